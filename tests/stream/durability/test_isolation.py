"""Isolation with real indexes: no read returns another user's memories or affects another user's ranking.

One test stores as A and reads as B on every read path. Another compares a user's answers alone and among many users
with the same texts, to the last digit.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from streams.adapters.vectors.embedded.edge_index import PartitionedIndex
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message

Json = dict[str, Any]

TALK = [
    "We deploy to fly.io since March.",
    "Who moved the kettle? It was on the shelf.",
    "Ben moved it. He always does.",
    "My diary is under the third floor board.",
    "Must validate all user input, always.",
    "The flight to Lisbon leaves on 12 May at 9:40.",
    "No, use LDAP not OAuth.",
    "The login fails with a stack trace in auth.py.",
    "I had two kettles once; both of them leaked.",
    "Carla likes climbing and old maps.",
]

QUESTIONS = ["where do we deploy?", "who moved the kettle", "When does the flight leave?", "climbing maps Lisbon"]

ITEMS: Json = {"types": ["semantic", "procedural", "state_object", "document"], "top_k": 100}
"""Types of items."""

OTHERS = 80
"""Other users: together some 500 turns, many times those of one."""


@asynccontextmanager
async def embedded_index_pipeline(directory: Path) -> AsyncIterator[InMemoryPipeline]:
    directory.mkdir()
    index = PartitionedIndex(directory / "vectors")
    try:
        async with InMemoryPipeline(directory, index=index).running() as running:  # type: ignore[arg-type]
            yield running
    finally:
        await index.close()


async def remember_conversation(pipeline: InMemoryPipeline, user: str, talk: list[str]) -> None:
    for number, text in enumerate(talk):
        moment = f"2026-03-{number % 20 + 1:02}T10:00:00Z"
        conversation = "c1" if number < len(talk) / 2 else "c2"
        await pipeline.remember(
            text, f"t-{number}", user=user, conversation_id=conversation, occurred_at=moment, speaker="Ana"
        )
    await pipeline.topics.settled()


async def answers(pipeline: InMemoryPipeline, user: str) -> list[Json]:
    """Return all answers to a user, without durations and ids of contexts."""
    shown = []
    for question in QUESTIONS:
        for how in ({}, {"mode": "*"}, {"include_superseded": True, "top_k": 100}, ITEMS, {"depth": "auto"}):
            reply = await pipeline.retrieve(question, user=user, explain=True, **how)
            reply["result"]["diagnostics"].pop("took_ms")
            shown.append(reply)
        context = await pipeline.assemble(question, user=user, conversation_id="c1", budget_tokens=500)
        context["result"].pop("context_id")
        shown.append(context)
    return shown


async def test_scores_do_not_depend_on_other_users(tmp_path: Path) -> None:
    async with embedded_index_pipeline(tmp_path / "alone") as alone:
        await remember_conversation(alone, "ana", TALK)
        expected = await answers(alone, "ana")
    assert any(hit["type"] != "episodic" for shown in expected for hit in shown["result"].get("hits", ()))
    assert any(hit.get("items") for shown in expected for hit in shown["result"].get("hits", ()))
    async with embedded_index_pipeline(tmp_path / "among") as among:
        for number in range(OTHERS):
            # Overlapping texts in other orders and numbers, some before and some after the user's.
            if number == OTHERS // 2:
                await remember_conversation(among, "ana", TALK)
            await remember_conversation(among, f"other-{number}", (TALK[number % 10 :] + TALK)[: 4 + number % 5])
        assert await answers(among, "ana") == expected


@pytest.fixture
async def stored(tmp_path: Path) -> AsyncIterator[tuple[InMemoryPipeline, list[str]]]:
    """A pipeline with memories of A in every project and mode, and none of B."""
    async with embedded_index_pipeline(tmp_path / "map") as pipeline:
        await pipeline.command("declare_mode", user="a", name="journal", embedder="tiny32")
        await remember_conversation(pipeline, "a", TALK)
        for number, text in enumerate(TALK):
            scope = {"user_id": "a", "project_id": "p1"}
            await pipeline.remember(text, f"p-{number}", user="a", scope=scope, mode="journal")
        await pipeline.topics.settled()
        yield pipeline, [memory.memory_id for memory in pipeline.memories.all()]


def is_free_of(reply: Json, ids: list[str]) -> bool:
    text = json.dumps(reply, ensure_ascii=False)
    return not any(part in text for part in (*TALK, *ids))


async def test_no_read_path_returns_another_users_memories(stored: tuple[InMemoryPipeline, list[str]]) -> None:
    pipeline, ids = stored
    replies = []
    for question in (*QUESTIONS, *TALK):
        ways: tuple[Json, ...] = (
            {},
            {"mode": "*"},
            {"mode": ["general"]},
            {"include_superseded": True},
            {"depth": "auto"},
            ITEMS,
        )
        for how in ways:
            scope = {"user_id": "b", "project_id": "*"}
            replies.append(await pipeline.retrieve(question, user="b", **({"scope": scope, "top_k": 100} | how)))
        replies.append(await pipeline.retrieve(question, user="b", conversation_id="c1"))
        replies.append(await pipeline.assemble(question, user="b", conversation_id="c1"))
    replies.append(await pipeline.assemble("diary", user="b", pins=[]))
    assert all(reply["status"] == "ok" for reply in replies)
    assert all(reply["result"].get("hits", []) == [] for reply in replies)
    assert all(is_free_of(reply, ids) for reply in replies)
    refused = [await pipeline.retrieve("diary", user="b", mode="journal")]
    assert [reply["error"]["code"] for reply in refused] == ["unknown_mode"], "modes are private too"
    listed = await pipeline.command("list_modes", user="b")
    assert [mode["name"] for mode in listed["result"]["modes"]] == ["general"]
    health = (await pipeline.command("health", user="b"))["result"]
    assert all(mode["eligible"] == 0 for mode in health["modes"].values())


async def test_id_opens_nothing_to_another_user(stored: tuple[InMemoryPipeline, list[str]]) -> None:
    pipeline, ids = stored
    before = {memory.memory_id: memory for memory in pipeline.memories.all()}
    for memory_id in ids:
        for project in ("default", "p1"):
            seen = await pipeline.command("get_memory", user="b", project=project, memory_id=memory_id)
            moved = await pipeline.command(
                "set_memory_mode", user="b", project=project, memory_id=memory_id, mode="general"
            )
            assert [seen["error"]["code"], moved["error"]["code"]] == ["not_found", "not_found"]
    pinned = await pipeline.assemble("diary", user="b", pins=ids)
    assert not any(part in json.dumps(pinned) for part in TALK)
    assert {memory.memory_id: memory for memory in pipeline.memories.all()} == before


async def test_project_is_as_closed_to_another_of_the_same_user(stored: tuple[InMemoryPipeline, list[str]]) -> None:
    pipeline, ids = stored
    scope = {"user_id": "a", "project_id": "p2"}
    for question in QUESTIONS:
        for how in ({"mode": "*"}, {"mode": "journal"}, {}, ITEMS, {"depth": "auto"}):
            reply = await pipeline.retrieve(question, user="a", **({"scope": scope, "top_k": 100} | how))
            assert reply["result"]["hits"] == []
            assert is_free_of(reply, ids)
        reply = await pipeline.assemble(question, user="a", scope=scope, conversation_id="c1", pins=ids[:3])
        assert not any(part in json.dumps(reply) for part in TALK)


READS_AND_WRITES: dict[str, Json] = {"get_memory": {}, "set_memory_mode": {"mode": "general"}, "forget": {}}
"""Commands that name a memory by its id."""


def without_receipt(answer: Json) -> Json:
    return {**answer, "result": {**(answer.get("result") or {}), "receipt": None}}


@pytest.mark.parametrize("command", READS_AND_WRITES)
async def test_foreign_memory_is_answered_as_one_that_does_not_exist(tmp_path: Path, command: str) -> None:
    async with InMemoryPipeline(tmp_path, partitions=1).running() as pipeline:
        foreign = []
        for scope in ({"user_id": "a"}, {"user_id": "b", "project_id": "p2"}):
            reply = await pipeline.ask(
                pipeline.names.turns, turn_message("My diary.", "t", scope["user_id"], scope=scope)
            )
            foreign.append(reply["result"]["memory_id"])
        gone = (await pipeline.ask(pipeline.names.turns, turn_message("Gone.", "g", "a")))["result"]["memory_id"]
        await pipeline.command("forget", user="a", memory_id=gone)
        arguments = READS_AND_WRITES[command]
        expected = await pipeline.command(command, user="b", memory_id="never-there", **arguments)
        for memory_id in (*foreign, gone):
            answer = await pipeline.command(command, user="b", memory_id=memory_id, **arguments)
            assert without_receipt(answer) == without_receipt(expected)


async def test_foreign_memories_in_a_list_are_answered_as_missing_ones(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, partitions=1).running() as pipeline:
        theirs = (await pipeline.ask(pipeline.names.turns, turn_message("My diary.", "t", "a")))["result"]["memory_id"]
        mine = (await pipeline.ask(pipeline.names.turns, turn_message("My plan.", "t", "b")))["result"]["memory_id"]
        for others in ([], [mine]):
            replies = [
                await pipeline.command("set_memory_mode", user="b", memory_ids=[memory_id, *others], mode="general")
                for memory_id in ("never-there", theirs)
            ]
            assert replies[0] == replies[1]
        assert pipeline.memory("My diary.").mode_source == "fallback"
