"""Answers of a language model from memory: what it is shown, what is stored, and what a second delivery does."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.commands.admit import Admit
from schemas.messages.records import Outgoing, Record
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from streams.flow.steps.answer_with_model import MAX_WAITING_OF_USER
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

WORDS = "Under the pot."
STREAM = (("stream", b"1"),)


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        yield running


def shown(pipeline: InMemoryPipeline) -> str:
    return json.dumps([dict(message) for message in pipeline.language.chats[-1].messages])


def stored(pipeline: InMemoryPipeline) -> list[tuple[str | None, str]]:
    """Return the turns that were published by the worker, in their order."""
    turns = [json.loads(record.value or b"") for record in pipeline.topics.records(pipeline.names.turns)]
    return [(turn["role"], turn["content"]) for turn in turns if turn["turn_id"].startswith("answer-")]


def question(pipeline: InMemoryPipeline, query: str, **fields: Any) -> Outgoing:
    """Return a request as one record, to be delivered any number of times."""
    request = {"schema": "answer.v1", "scope": {"user_id": "u1"}, "query": query, "conversation_id": "c1", **fields}
    headers = (("reply_to", pipeline.names.replies.encode()), ("correlation_id", b"same"))
    return Outgoing(
        pipeline.names.retrieve, b"u1", json.dumps(request).encode(), headers, timestamp_ms=1_700_000_000_000
    )


async def deliver(pipeline: InMemoryPipeline, out: Outgoing, replies: int) -> Json:
    """Deliver a request, and return the last of so many replies."""
    await pipeline.topics.append(out)
    await pipeline.topics.until(lambda: len(pipeline.replies(b"same")) == replies)
    return pipeline.replies(b"same")[-1]


async def test_the_model_is_shown_memories_and_then_the_question(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("The spare key is under the pot.", conversation_id="old")
    await pipeline.topics.settled()
    result = (await pipeline.answer("where is the spare key?", store=False))["result"]
    assert result["text"] == WORDS
    assert "key is under the pot" in pipeline.language.chats[0].messages[1]["content"]
    assert pipeline.language.chats[0].messages[-1]["content"] == "where is the spare key?"


async def test_system_prompt_is_that_of_the_file_unless_the_request_has_one(pipeline: InMemoryPipeline) -> None:
    await pipeline.answer("tea?", store=False)
    await pipeline.answer("tea?", store=False, system_prompt="Be brief.")
    systems = [chat.messages[0]["content"] for chat in pipeline.language.chats]
    assert systems[0].startswith("You answer the last question")
    assert systems[1] == "Be brief."


async def test_private_memories_are_not_shown(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("My locker has the code 4711.", private=True, conversation_id="c1")
    await pipeline.topics.settled()
    await pipeline.answer("what is the code of my locker?", conversation_id="c1")
    assert "4711" not in shown(pipeline)


async def test_question_and_answer_become_turns(pipeline: InMemoryPipeline) -> None:
    result = (await pipeline.answer("where is the key?", conversation_id="c1"))["result"]
    assert stored(pipeline) == [("user", "where is the key?"), ("assistant", WORDS)]
    await pipeline.topics.settled()
    assert pipeline.memory(WORDS).turn_id == result["stored"]["answer"]


async def test_an_answer_too_long_for_one_turn_is_several(pipeline: InMemoryPipeline) -> None:
    pipeline.language.words = ["a" * 40_000]
    out = question(pipeline, "tell me all")
    assert (await deliver(pipeline, out, 1))["result"]["text"] == "a" * 40_000
    await pipeline.topics.settled()
    assert (await deliver(pipeline, out, 2))["result"]["text"] == "a" * 40_000


async def test_same_request_again_is_answered_by_what_is_stored(pipeline: InMemoryPipeline) -> None:
    out = question(pipeline, "where is the key?")
    first = await deliver(pipeline, out, 1)
    await pipeline.topics.settled()
    pipeline.language.words = ["Somewhere else."]
    again = (await deliver(pipeline, out, 2))["result"]
    # The account of the context is that of now.
    assert {**again, "context": None} == {**first["result"], "context": None}
    assert len(stored(pipeline)) == 2


@pytest.mark.parametrize("store", [True, False])
async def test_same_request_meanwhile_waits_for_the_first(pipeline: InMemoryPipeline, store: bool) -> None:
    pipeline.language.released.clear()
    out = question(pipeline, "where is the key?", store=store)
    await pipeline.topics.append(out)
    await pipeline.topics.append(out)
    await pipeline.until(lambda: bool(pipeline.language.chats))
    pipeline.language.released.set()
    await pipeline.topics.until(lambda: len(pipeline.replies(b"same")) == 2)
    assert len(pipeline.language.chats) == 1


async def test_answer_that_was_not_stored_is_kept_for_another_delivery(pipeline: InMemoryPipeline) -> None:
    out = question(pipeline, "where is the key?", store=False)
    await deliver(pipeline, out, 1)
    await deliver(pipeline, out, 2)
    assert len(pipeline.language.chats) == 1


@pytest.mark.parametrize("behaviour", ["down", "wrong"])
async def test_model_without_an_answer_leaves_the_question(pipeline: InMemoryPipeline, behaviour: Any) -> None:
    pipeline.language.become(behaviour)
    error = (await pipeline.answer("where is the key?", conversation_id="c1"))["error"]
    assert error["code"] == "unavailable"
    assert stored(pipeline) == [("user", "where is the key?")]


async def test_model_that_hangs_is_given_up_before_the_deadline(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    deadline = str(round(pipeline.clock.now().timestamp() * 1000) + 500).encode()
    error = (await pipeline.answer("where is the key?", conversation_id="c1", headers=(("deadline", deadline),)))[
        "error"
    ]
    assert error == {
        "code": "unavailable", "message": "the language model did not answer in time", "field": "profile",
    }  # fmt: skip


async def test_partial_replies_come_before_the_final_one(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    asked = question(pipeline, "where is the key?")
    await pipeline.topics.append(Outgoing(asked.topic, asked.key, asked.value, (*asked.headers, *STREAM)))
    await pipeline.topics.until(lambda: bool(pipeline.replies(b"same")))
    assert pipeline.replies(b"same") == [
        {"schema": "reply.v1", "status": "partial", "seq": 0, "delta": {"text": "Under "}}
    ]
    pipeline.language.released.set()
    await pipeline.topics.until(lambda: pipeline.replies(b"same")[-1]["status"] == "ok")
    assert pipeline.replies(b"same")[-1]["result"]["text"] == WORDS


FORM = {"type": "json_schema", "json_schema": {"name": "place", "schema": {"type": "object", "required": ["place"]}}}


async def test_an_answer_of_a_form_is_parsed(pipeline: InMemoryPipeline) -> None:
    pipeline.language.words = ['{"place": ', '"pot"}']
    assert (await pipeline.answer("where?", store=False, response_format=FORM))["result"]["parsed"] == {"place": "pot"}


async def test_an_answer_of_another_form_is_none(pipeline: InMemoryPipeline) -> None:
    error = (await pipeline.answer("where?", conversation_id="c1", response_format=FORM))["error"]
    assert error["code"] == "unavailable"
    assert stored(pipeline) == [("user", "where?")]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"profile": "never"}, "profile"),
        ({"store": True}, "conversation_id"),
        ({"conversation_id": "c1", "scope": {"user_id": "u1", "project_id": "*"}}, "scope.project_id"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": 7}}}},
         "response_format.json_schema.schema"),
    ],
)  # fmt: skip
async def test_request_that_makes_no_sense_is_refused(pipeline: InMemoryPipeline, fields: Json, field: str) -> None:
    error = (await pipeline.answer("tea?", **{"store": field != "profile", **fields}))["error"]
    assert error["code"] == "invalid_value"
    assert error["field"] == field


async def test_without_a_profile_the_setting_is_named(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path).running() as pipeline:
        error = (await pipeline.answer("tea?", store=False))["error"]
    assert error["code"] == "unavailable"
    assert "MODESTREAM_LLM_PROFILES" in error["message"]


async def test_flood_of_a_user_is_refused_and_others_are_answered(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    asking = [
        asyncio.create_task(pipeline.answer(f"{number}?", store=False)) for number in range(MAX_WAITING_OF_USER + 1)
    ]
    done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result()["error"]["code"] for task in done] == ["unavailable"]
    other = asyncio.create_task(pipeline.answer("tea?", user="ben", store=False))
    await pipeline.until(lambda: any(chat.messages[-1]["content"] == "tea?" for chat in pipeline.language.chats))
    pipeline.language.released.set()
    assert (await other)["result"]["text"] == WORDS
    await asyncio.gather(*asking)


POLICY = {"reader": [{"user_id": "u1", "may": ["read"]}], "writer": [{"user_id": "u1", "may": ["read", "write"]}]}


@pytest.mark.parametrize(("principal", "status"), [("reader", "error"), ("writer", "ok")])
async def test_storing_needs_the_permission_to_write(tmp_path: Path, principal: str, status: str) -> None:
    admit = Admit(PolicyFile(Policy.model_validate({"principals": POLICY})))
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE, admit=admit).running() as pipeline:
        reply = await pipeline.answer("tea?", conversation_id="c1", headers=(("principal", principal.encode()),))
        await pipeline.topics.settled()
        assert reply["status"] == status
        assert bool([*pipeline.memories.all()]) is (status == "ok")


async def test_its_run_is_of_its_own_kind(pipeline: InMemoryPipeline) -> None:
    await pipeline.answer("tea?", store=False, headers=(("run", b"1"),))
    await pipeline.topics.settled()
    records: list[Record] = pipeline.topics.records(pipeline.names.runs)
    [run] = [json.loads(record.value or b"") for record in records]
    assert run["kind"] == "answer.v1"
    assert run["models"][0]["step"] == "retrieve.answer"
