"""Custom steps of a deployment in the whole pipeline: what they change, and what a failure costs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.language_model import ONE_PROFILE
from tests.stream.pipelines.test_editing import REDACT, edit, insert
from tests.worlds.consolidation import consolidate, of_origin
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

CARD = "Pay with 4111 1111 1111 1111 please."
REDACTED = "Pay with [card] please."


async def said(pipeline: InMemoryPipeline, text: str, turn_id: str | None = "t1", **fields: Any) -> Json:
    message = turn_message(text, turn_id or "", **fields)
    if turn_id is None:
        del message["turn_id"]
    return await pipeline.ask(pipeline.names.turns, message)


def stored(pipeline: InMemoryPipeline) -> list[str]:
    return sorted(memory.text for memory in pipeline.memories.all() if memory.origin == "said")


async def test_redacted_text_is_all_that_is_stored_and_events_carry_no_other(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, REDACT)
    assert (await said(pipeline, CARD))["status"] == "ok"
    await pipeline.topics.settled()
    assert stored(pipeline) == [REDACTED]
    assert pipeline.memory(REDACTED).revision == 1
    internal = [record for topic in pipeline.names.internal_events() for record in pipeline.topics.records(topic)]
    assert internal
    assert not [record for record in internal if b"4111" in (record.value or b"")]


async def test_same_turn_again_is_a_duplicate_before_and_after_the_pipelines_change(pipeline: InMemoryPipeline) -> None:
    plain = await said(pipeline, CARD, "before")
    await edit(pipeline, REDACT)
    assert (await said(pipeline, CARD, "before"))["result"] == plain["result"] | {"duplicate": True}
    redacted = await said(pipeline, CARD, "after")
    assert (await said(pipeline, CARD, "after"))["result"]["duplicate"]
    await pipeline.command("rollback_pipeline", revision=0)
    again = await said(pipeline, CARD, "after")
    assert again["result"] == redacted["result"] | {"duplicate": True}
    assert stored(pipeline) == sorted([CARD, REDACTED])
    edited = await said(pipeline, "No card at all.", "after")
    assert edited["result"]["version"] == 2


async def test_turn_without_an_id_keeps_the_id_of_what_was_published(pipeline: InMemoryPipeline) -> None:
    fields = {"occurred_at": "2026-03-01T09:30:00Z"}
    plain = await said(pipeline, CARD, None, **fields)
    await edit(pipeline, REDACT)
    again = await said(pipeline, CARD, None, **fields)
    assert again["result"]["memory_id"] == plain["result"]["memory_id"]
    assert again["result"]["duplicate"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("please raise", "RuntimeError"),
        ("please exit", "SystemExit"),
        ("an interrupt", "KeyboardInterrupt"),
        ("please cancel", "CancelledError"),
        ("please hang", "did not end within 0.05 s"),
        ("undeclared", "it returned ['items']"),
        ("steal it", "it changed scope"),
        ("grow", "ValidationError"),
    ],
)
async def test_failing_step_costs_its_turn_a_dead_letter_and_others_nothing(
    pipeline: InMemoryPipeline, text: str, reason: str
) -> None:
    await edit(pipeline, insert("memorize.unreliable", "memorize.ingest", "Unreliable", timeout_s=0.05))
    failing = asyncio.create_task(said(pipeline, text, "bad"))
    assert (await said(pipeline, "All is well.", "good"))["status"] == "ok"
    error = (await failing)["error"]
    assert error["code"] == "internal"
    assert reason in error["message"]
    [letter] = pipeline.dead_letters()
    assert text.encode() in (letter.value or b"")
    assert stored(pipeline) == ["All is well."]


async def test_step_that_may_be_skipped_leaves_the_turn_as_it_is(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, insert("memorize.unreliable", "memorize.ingest", "Unreliable", on_failure="skip"))
    assert (await said(pipeline, "please raise"))["status"] == "ok"
    assert stored(pipeline) == ["please raise"]


async def test_items_pass_custom_steps_and_replaced_extraction_makes_its_own(pipeline: InMemoryPipeline) -> None:
    text = "I live in Lisbon with my family since 2019. I love hiking."
    await said(pipeline, text, "plain")
    await pipeline.topics.settled()
    before = {memory.text for memory in of_origin(pipeline, "extracted")}
    assert len(before) == 2
    await edit(pipeline, insert("memorize.long", "memorize.extract_items", "LongItemsOnly"))
    await said(pipeline, text + " Bye.", "plain")
    await pipeline.topics.settled()
    assert {memory.text for memory in of_origin(pipeline, "extracted")} == {max(before, key=len)}
    own = {
        "op": "replace",
        "step_id": "memorize.extract_items",
        "implementation": "tests.builders.custom_steps.WholeTextAsItem",
    }
    await edit(pipeline, own)
    await said(pipeline, "Whatever this sentence says, all of it.", "whole")
    await pipeline.topics.settled()
    assert "Whatever this sentence says, all of it." in {memory.text for memory in of_origin(pipeline, "extracted")}


async def test_query_and_hits_pass_custom_steps_in_searches_and_contexts(pipeline: InMemoryPipeline) -> None:
    for number, text in enumerate(("The lantern is red.", "A lantern was sold yesterday.")):
        await said(pipeline, text, f"t{number}")
    plain = await pipeline.texts("lantern red")
    await edit(pipeline, insert("retrieve.words", "retrieve.receive", "Synonyms", words={"torch": "lantern"}))
    assert await pipeline.texts("torch red") == plain
    await edit(pipeline, insert("retrieve.turned", "retrieve.rank", "Reverse"))
    assert await pipeline.texts("lantern red") == plain[::-1]
    context = await pipeline.assemble("torch red", min_score=0)
    assert len(context["result"]["references"]) == 2


async def test_invented_hit_is_in_no_answer(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, "The lantern is red.")
    await pipeline.topics.settled()
    await edit(pipeline, insert("retrieve.invent", "retrieve.rank", "Invent"))
    reply = await pipeline.retrieve("lantern")
    assert [hit["text"] for hit in reply["result"]["hits"]] == ["The lantern is red."]
    assert [warning["code"] for warning in reply["warnings"]] == ["step_failed"]
    assert "retrieve.invent" in reply["warnings"][0]["message"]


async def test_class_in_the_place_of_the_models_order_asks_no_model(pipeline: InMemoryPipeline) -> None:
    for number, text in enumerate(("The lantern is red.", "A lantern was sold yesterday.")):
        await said(pipeline, text, f"t{number}")
    plain = await pipeline.texts("lantern red")
    own = {"op": "replace", "step_id": "retrieve.rerank", "implementation": "tests.builders.custom_steps.Reverse"}
    await edit(pipeline, own)
    reply = await pipeline.retrieve("lantern red", rerank=True)
    assert [hit["text"] for hit in reply["result"]["hits"]] == plain[::-1]
    assert reply["warnings"] == []


@pytest.fixture
async def understood(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        yield running


async def test_custom_step_with_a_model_changes_what_was_understood(understood: InMemoryPipeline) -> None:
    await edit(understood, insert("memorize.topic", "memorize.understand", "WithTopic"))
    await said(understood, "About [[general]].")
    await understood.until(lambda: understood.memory("About [[general]].").reading.status == "model")
    reading = understood.memory("About [[general]].").reading
    assert reading.topic == "topic general"
    assert reading.revision == 1
    assert [prompt.version for prompt in understood.language.asked] == ["understand-3", "topic-1"]


async def test_custom_step_asks_no_model_about_what_is_private(understood: InMemoryPipeline) -> None:
    await edit(understood, insert("retrieve.order", "retrieve.rank", "OrderedByModel"))
    await said(understood, "The lantern is red.", "t1")
    await said(understood, "A lantern was sold yesterday.", "t2", private=True)
    plain = await understood.texts("lantern red")
    assert "order-1" not in [prompt.version for prompt in understood.language.asked]
    await understood.command("forget", turn_id="t2", conversation_id="c1")
    assert await understood.texts("lantern red") == plain[:1]
    assert "order-1" in [prompt.version for prompt in understood.language.asked]


async def test_model_that_is_switched_off_is_asked_when_it_is_on_again(understood: InMemoryPipeline) -> None:
    await said(understood, "First [[general]].", "t1")
    await understood.until(lambda: understood.memory("First [[general]].").reading.status == "model")
    await edit(understood, {"op": "remove", "step_id": "memorize.understand"})
    await said(understood, "Second.", "t2")
    await understood.topics.settled()
    assert understood.memory("Second.").reading.status == "rules"
    assert len(understood.language.asked) == 1
    await understood.command("rollback_pipeline", revision=0)
    await said(understood, "Third.", "t3")
    await understood.until(lambda: understood.memory("Third.").reading.status == "model")


async def test_intention_learns_nothing_while_it_is_switched_off(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, {"op": "remove", "step_id": "memorize.intend"})
    await said(pipeline, "My goal is to run a marathon in May.", "t1")
    await pipeline.topics.settled()
    assert (await pipeline.command("get_intention"))["result"]["goals"] == []
    await pipeline.command("rollback_pipeline", revision=0)
    await said(pipeline, "My goal is to run a marathon in June.", "t2")
    await pipeline.topics.settled()
    assert (await pipeline.command("get_intention"))["result"]["goals"] != []


async def test_consolidation_leaves_out_what_an_custom_step_does(pipeline: InMemoryPipeline) -> None:
    for number in range(6):
        day = "Monday" if number < 3 else "Tuesday"
        await said(pipeline, f"Watered the tomatoes in the greenhouse on {day}.", f"t{number}",
                   occurred_at=f"2026-02-{number + 1:02}T08:00:00Z")  # fmt: skip
    await pipeline.topics.settled()
    await edit(pipeline, insert("evolve.days", "evolve.select", "NothingOfMonday"))
    result = await consolidate(pipeline)
    assert len(result["superseded"]) == 3
    await edit(pipeline, {"op": "remove", "step_id": "evolve.summarise"}, {"op": "remove", "step_id": "evolve.days"})
    assert (await consolidate(pipeline))["created"] == []
    await edit(pipeline, {"op": "config", "step_id": "evolve.summarise", "enabled": True})
    assert len((await consolidate(pipeline))["superseded"]) == 3
