"""Which requests leave a run record, and what it has: never a text, unless the deployment allows it."""

import json
from typing import Any

import pytest
from modestream_client.contexts import AssembleResult

from agents.ports.clock import ModelCall, current_run, step
from schemas.failures import Poison, Rejected, Unavailable
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.messages.retrieval import ListRequest, RetrieveRequest, RetrieveResult
from schemas.messages.turns import TurnAccepted
from streams.flow.requests.channel import Channel, HandlerResult
from streams.flow.runs.recorder import RunOptions
from tests.builders.turns import record, turn_fields
from tests.harnesses.requests import COMMANDS, REPLY, TURNS, RequestHarness

SECRET = "The deploy target is fly.io now."
QUESTIONS = Channel(
    "memory.retrieve", {"retrieve.v1": RetrieveRequest, "list.v1": ListRequest}, "read", concurrent=True
)
QUESTION = {"schema": "retrieve.v1", "scope": {"user_id": "u1", "project_id": ["p1", "p2"]}, "query": SECRET}
LIST = {"schema": "list.v1", "scope": {"user_id": "u1"}, "what": "memories"}
ALL, NONE = RunOptions(sample=1), RunOptions()
ACCEPTED = TurnAccepted(
    memory_id="m1", turn_id="t1", mode="general", mode_source="fallback", version=1, duplicate=False
)
HITS = RetrieveResult(hits=[], modes=["general"], strategy="lexical", diagnostics={"depth": "items", "candidates": 7})


def turns(options: RunOptions) -> RequestHarness:
    harness = RequestHarness(TURNS, runs=options)
    harness.result = HandlerResult(SuccessReply(ACCEPTED))
    return harness


def questions(options: RunOptions) -> RequestHarness:
    harness = RequestHarness(QUESTIONS, runs=options)
    harness.result = HandlerResult(SuccessReply(HITS, (ReplyWarning("degraded", "no vectors"),)))
    return harness


def question(**changes: Any) -> Any:
    return record({**QUESTION, **changes}, topic="memory.retrieve", headers=REPLY)


async def test_a_question_is_recorded_with_counts_and_no_text() -> None:
    harness = questions(ALL)
    await harness.process(question(top_k=5))
    [run] = harness.recorded
    assert run["schema"] == "run.v1"
    assert run["run_id"] == f"retrieve-{harness.handled[0][0].partition}-0"
    assert run["pipeline"] == "retrieve"
    assert run["part"] == "answer"
    assert run["kind"] == "retrieve.v1"
    assert run["scope"] == {"user_id": "u1", "project_id": ["p1", "p2"]}
    assert run["input"] == {"query_chars": len(SECRET), "top_k": 5, "depth": "items"}
    assert run["outcome"]["strategy"] == "lexical"
    assert run["outcome"]["depth"] == "items"
    assert run["warnings"] == ["degraded"]
    assert run["revision"] == {"number": 0, "hash": ""}
    assert SECRET not in json.dumps(run)


async def test_a_turn_is_recorded_with_its_memory_and_no_text() -> None:
    harness = turns(ALL)
    await harness.process(record(turn_fields(SECRET, turn_id="t1")))
    [out], [run] = harness.runs, harness.recorded
    assert out.topic == "memory.runs"
    assert out.key == b"u1"
    assert out.partition is None
    assert run["memory_id"] == "m1"
    assert run["input"] == {"conversation_id": "c1", "turn_id": "t1", "role": "user", "content_chars": len(SECRET)}
    assert [step["step"] for step in run["steps"]] == ["memorize.ingest"]
    assert "memory_id" not in run["outcome"]
    assert SECRET not in json.dumps(run)


async def test_texts_are_recorded_where_the_deployment_allows_them() -> None:
    harness = questions(RunOptions(sample=1, texts=True))
    await harness.process(question())
    assert harness.recorded[0]["input"]["query"] == SECRET
    harness.problem = Rejected("invalid_value", "the mode 'x' is not declared", "mode")
    await harness.process(question())
    assert harness.recorded[1]["failure"]["message"] == "the mode 'x' is not declared"


@pytest.mark.parametrize(("texts", "shown"), [(False, ["category", "m1"]), (True, ["category:p1/my divorce", "m1"])])
async def test_the_name_of_a_category_is_recorded_only_where_texts_are(texts: bool, shown: list[str]) -> None:
    harness = questions(RunOptions(sample=1, texts=texts))
    context = AssembleResult(
        messages=[], references=["category:p1/my divorce", "m1"], sections={}, budget={}, tokens={"total": 9},
        interaction_mode="GENERAL", interaction_confidence=1.0,
    )  # fmt: skip
    harness.result = HandlerResult(SuccessReply(context))
    await harness.process(question())
    assert harness.recorded[0]["outcome"]["memories_ids"] == shown


async def test_the_text_of_a_turn_is_never_recorded() -> None:
    harness = turns(RunOptions(sample=1, texts=True))
    await harness.process(record(turn_fields(SECRET)))
    assert SECRET not in json.dumps(harness.recorded)


async def test_without_a_share_only_failures_are_recorded() -> None:
    harness = turns(NONE)
    await harness.process(record(turn_fields()))
    assert harness.runs == []
    harness.problem = Rejected("unknown_mode", f"the mode {SECRET!r} is not declared", "mode")
    await harness.process(record(turn_fields(), headers=REPLY))
    [run] = harness.recorded
    assert run["failure"] == {"code": "unknown_mode", "field": "mode", "is_dead_letter": True}
    assert "outcome" not in run
    assert SECRET not in json.dumps(run)


async def test_a_request_can_ask_for_its_record() -> None:
    harness = turns(NONE)
    await harness.process(record(turn_fields(), headers=(("run", b"1"),)))
    assert len(harness.runs) == 1


async def test_the_share_is_the_same_on_redelivery() -> None:
    harness = questions(RunOptions(sample=0.3))
    for _ in range(2):
        for offset in range(200):
            await harness.process(record(QUESTION, topic="memory.retrieve", offset=offset))
    ids = [run["run_id"] for run in harness.recorded]
    first, again = ids[: len(ids) // 2], ids[len(ids) // 2 :]
    assert first == again
    assert 40 <= len(first) <= 80


@pytest.mark.parametrize(
    ("problem", "code"),
    [(Unavailable("the disk is full"), "unavailable"), (KeyError(SECRET), "internal"), (Poison("ended"), "poison")],
)
async def test_failures_of_a_question_are_recorded(problem: Exception, code: str) -> None:
    harness = questions(NONE)
    harness.problem = problem
    await harness.process(question())
    [run] = harness.recorded
    assert run["failure"]["code"] == code
    assert run["failure"]["is_dead_letter"] == (code == "poison")
    assert SECRET not in json.dumps(run)


async def test_a_turn_that_waits_for_its_store_is_recorded_and_not_lost() -> None:
    harness = turns(NONE)
    harness.problem = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        await harness.process(record(turn_fields()))
    assert [run["failure"]["code"] for run in harness.recorded] == ["unavailable"]


async def test_a_record_that_cannot_be_read_is_under_the_user_that_it_names_or_its_key() -> None:
    harness = turns(NONE)
    await harness.process(record({**turn_fields(), "role": "nobody"}, key=b"other"))
    await harness.process(record(b"{", key=b"u1"))
    await harness.process(record(b"{", key=None, partition=3))
    assert [(out.key, out.partition) for out in harness.runs] == [(b"u1", None), (b"u1", None), (None, 3)]
    assert [run["failure"]["code"] for run in harness.recorded] == ["invalid_value", "invalid_json", "invalid_json"]
    assert all(run["scope"] == {} and run["request"]["bytes"] for run in harness.recorded)


async def test_what_is_past_its_deadline_has_expired() -> None:
    harness = questions(NONE)
    await harness.process(record(QUESTION, topic="memory.retrieve", headers=(("deadline", b"1"),)))
    harness.result = HandlerResult(None)
    await harness.process(question())
    assert [run["failure"]["code"] for run in harness.recorded] == ["expired", "expired"]


async def test_lists_and_commands_have_no_run() -> None:
    harness = questions(ALL)
    await harness.process(record(LIST, topic="memory.retrieve"))
    commands = RequestHarness(COMMANDS, runs=ALL)
    await commands.process(commands.valid())
    assert harness.runs == []
    assert commands.runs == []
    assert len(harness.handled) == len(commands.handled) == 1


async def test_a_moved_record_is_recorded_where_it_belongs() -> None:
    harness = turns(ALL)
    await harness.process(record(turn_fields(), partition=(record(turn_fields()).partition + 1) % 4))
    assert harness.runs == []


async def test_steps_and_models_of_the_handler_are_in_the_record() -> None:
    harness = questions(NONE)

    async def handle(*_: Any) -> HandlerResult:
        run = current_run()
        assert run is not None
        with step("retrieve.recall"):
            run.add_model(ModelCall("retrieve.rerank", run.began, run.began + 0.5, failure="timeout"))
        return HandlerResult(SuccessReply(HITS))

    harness._requests._handler = handle
    await harness.process(question())
    [run] = harness.recorded
    assert [step["step"] for step in run["steps"]] == ["retrieve.receive", "retrieve.recall"]
    [model] = run["models"]
    assert model["step"] == "retrieve.rerank"
    assert model["at_ms"] == 0.0
    assert model["ms"] == 500.0
    assert model["failure"] == "timeout"
    assert current_run() is None
