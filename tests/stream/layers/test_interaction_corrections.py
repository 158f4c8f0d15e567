"""Corrected interaction modes through the whole pipeline, and what corrections of many users change for all."""

from pathlib import Path
from typing import Any

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.stability import MIN_WEEK_TURNS, MIN_WEEK_USERS, count_classification, count_correction
from schemas.moments import week_of
from schemas.state.interaction import INTERACTION_MODES, InteractionCounts
from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

ASKED = "Why does the login fail with a stack trace after five minutes?"
WEEK_S = 7 * 24 * 3600.0


async def say(pipeline: InMemoryPipeline, text: str, user: str = "u1") -> str:
    """Remember a turn, wait until it is classified and return its id."""
    await pipeline.remember(text, user=user)
    await pipeline.topics.settled()
    return pipeline.memory(text).memory_id


async def correct(pipeline: InMemoryPipeline, memory_id: str, mode: str, user: str = "u1") -> Json:
    return await pipeline.command("set_interaction_mode", user, memory_id=memory_id, interaction_mode=mode)


def other_mode(pipeline: InMemoryPipeline, text: str) -> InteractionMode:
    interaction = pipeline.memory(text).reading.interaction
    assert interaction is not None
    return "TASK" if interaction.mode != "TASK" else "LEARNING"


def usual_week(pipeline: InMemoryPipeline, users: int = MIN_WEEK_USERS, corrected: int = 2) -> None:
    """Count a week of usual turns of many users, in all partitions, at the present time."""
    week = week_of(pipeline.clock.now())
    for number in range(users):
        user, partition = f"many-{number}", partition_of(f"many-{number}".encode(), pipeline.partitions)
        mode = INTERACTION_MODES[number % len(INTERACTION_MODES)]
        counts = count_classification(pipeline.interactions.get(partition), user, mode, week)
        if number < corrected:
            counts = count_correction(counts, user, week)
        pipeline.interactions.put(partition, counts)


def two_usual_weeks(pipeline: InMemoryPipeline) -> None:
    usual_week(pipeline)
    pipeline.clock.forward(WEEK_S)
    usual_week(pipeline)


async def context(pipeline: InMemoryPipeline) -> tuple[str, list[str]]:
    reply = await pipeline.assemble(ASKED)
    return reply["result"]["interaction_mode"], [warning["code"] for warning in reply["warnings"]]


async def health(pipeline: InMemoryPipeline) -> Any:
    return (await pipeline.command("health"))["result"]["interaction"]


def gauge(pipeline: InMemoryPipeline, reason: str) -> float | None:
    return pipeline.meters.registry.get_sample_value("modestream_interaction_fallback", {"reason": reason})


async def test_correction_is_answered_with_the_memory_and_shown(pipeline: InMemoryPipeline) -> None:
    text = "Perhaps we could look at it from the other side."
    memory_id = await say(pipeline, text)
    wanted = other_mode(pipeline, text)
    for _ in range(2):
        reply = await correct(pipeline, memory_id, wanted)
        assert reply["status"] == "ok"
        assert reply["result"]["memory_id"] == memory_id
        assert reply["result"]["interaction_mode"] == wanted
    shown = (await pipeline.command("get_memory", memory_id=memory_id))["result"]
    assert shown == reply["result"]
    assert shown["interaction_confidence"] == 1.0
    assert shown["interaction_corrected"] is True


async def test_correction_right_after_the_turn_survives_its_classification(pipeline: InMemoryPipeline) -> None:
    accepted = await pipeline.ask(
        pipeline.names.turns,
        {"schema": "turn.v1", "scope": {"user_id": "u1"}, "conversation_id": "c1", "role": "user", "content": "violin"},
    )
    await correct(pipeline, accepted["result"]["memory_id"], "EXPLORATION")
    await pipeline.topics.settled()
    interaction = pipeline.memory("violin").reading.interaction
    assert interaction is not None
    assert interaction.mode == "EXPLORATION"


async def test_correction_survives_replay_and_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        memory_id = await say(pipeline, "violin")
        await correct(pipeline, memory_id, "EXPLORATION")
        before = pipeline.memory("violin")
    pipeline.topics.forget_acknowledged(10, (pipeline.names.turns, pipeline.names.commands, pipeline.names.changes))
    async with pipeline.running():
        await pipeline.topics.settled()
        assert pipeline.memory("violin") == before


async def test_corrected_turns_are_the_history_of_later_contexts(pipeline: InMemoryPipeline) -> None:
    texts = [f"Remark {number} about the island." for number in range(3)]
    ids = [await say(pipeline, text) for text in texts]
    asked: Json = {"conversation_id": "c1"}
    alone = (await pipeline.assemble("what next?"))["result"]
    confidences = []
    for mode in (alone["interaction_mode"], "EXPLORATION" if alone["interaction_mode"] != "EXPLORATION" else "TASK"):
        for memory_id in ids:
            await correct(pipeline, memory_id, mode)
        confidences.append((await pipeline.assemble("what next?", **asked))["result"]["interaction_confidence"])
    assert confidences[0] > alone["interaction_confidence"] > confidences[1]


async def test_evidence_is_kept_by_its_corrected_interaction_mode(pipeline: InMemoryPipeline) -> None:
    """TASK drops what was said in exploration, beyond the best hits."""
    texts = [f"The harbour relay number {number} listens on port {4000 + number}." for number in range(30)]
    ids = [await say(pipeline, text) for text in texts]
    asked: Json = {"interaction_mode": "TASK", "budget_tokens": 8000}
    for memory_id in ids:
        await correct(pipeline, memory_id, "TASK")
    kept = (await pipeline.assemble("which port does the harbour relay listen on?", **asked))["result"]["sections"]
    for memory_id in ids:
        await correct(pipeline, memory_id, "EXPLORATION")
    left = (await pipeline.assemble("which port does the harbour relay listen on?", **asked))["result"]["sections"]
    assert len(left["retrieved_evidence"]) < len(kept["retrieved_evidence"])


async def test_another_users_memory_is_not_found(pipeline: InMemoryPipeline) -> None:
    theirs = await say(pipeline, "violin", "u2")
    before = pipeline.memory("violin")
    refused, missing = [await correct(pipeline, memory_id, "TASK") for memory_id in (theirs, "unknown")]
    assert refused["error"]["code"] == "not_found"
    assert refused == missing
    await pipeline.topics.settled()
    assert pipeline.memory("violin") == before


async def test_what_one_user_forgets_moves_and_corrects_changes_no_other_answer(pipeline: InMemoryPipeline) -> None:
    two_usual_weeks(pipeline)
    before = await context(pipeline)
    await pipeline.command("declare_mode", "eve", name="code", embedder="tiny32")
    for number in range(12):
        text = f"ERROR: deadlock number {number} in the login, stack trace follows."
        memory_id = await say(pipeline, text, "eve")
        assert (await correct(pipeline, memory_id, other_mode(pipeline, text), "eve"))["status"] == "ok"
        await pipeline.command("set_memory_mode", "eve", memory_id=memory_id, mode="code")
        await pipeline.command("forget", "eve", memory_id=memory_id)
    assert await context(pipeline) == before
    assert before[1] == []
    said = await health(pipeline)
    assert said["fallback"] == []
    assert said["this_week"]["corrected"] == said["last_week"]["corrected"] + 1
    assert gauge(pipeline, "corrections") == 0


async def test_corrections_of_many_users_are_said_everywhere_and_survive_a_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        two_usual_weeks(pipeline)
        for number in range(20):
            text = f"Remark {number} about the island."
            memory_id = await say(pipeline, text, f"u{number}")
            await correct(pipeline, memory_id, other_mode(pipeline, text), f"u{number}")
    async with pipeline.running():
        assert (await context(pipeline))[1] == ["interaction_fallback"]
        said = await health(pipeline)
        assert said["fallback"] == ["corrections"]
        assert said["this_week"]["corrected"] == 22
        assert said["last_week"]["corrected"] == 2
        assert said["this_week"]["users"] == MIN_WEEK_USERS + 20
        assert gauge(pipeline, "corrections") == 1
        assert gauge(pipeline, "drift") == 0
        pipeline.clock.forward(WEEK_S)
        assert (await context(pipeline))[1] == [], "a week later it is over"


async def test_drift_is_a_fallback_until_the_week_is_over(pipeline: InMemoryPipeline) -> None:
    two_usual_weeks(pipeline)
    for partition in range(pipeline.partitions):
        counts = pipeline.interactions.get(partition)
        drifted: dict[str, InteractionMode] = dict.fromkeys(counts.latest.modes, "LEARNING")
        latest = counts.latest.model_copy(update={"modes": drifted})
        pipeline.interactions.put(partition, InteractionCounts(latest=latest, before=counts.before))
    assert (await context(pipeline))[1] == ["interaction_fallback"]
    assert (await health(pipeline))["fallback"] == ["drift"]
    assert gauge(pipeline, "drift") == 1
    pipeline.clock.forward(WEEK_S)
    assert (await context(pipeline))[1] == []


async def test_own_corrections_are_a_fallback_for_that_user_where_users_are_few(pipeline: InMemoryPipeline) -> None:
    for number in range(2 * MIN_WEEK_TURNS):
        if number == MIN_WEEK_TURNS:
            pipeline.clock.forward(WEEK_S)
        await pipeline.remember(
            f"Remark {number} about the island.", user="u1", occurred_at=pipeline.clock.now().isoformat()
        )
    await pipeline.topics.settled()
    for number in range(MIN_WEEK_TURNS, MIN_WEEK_TURNS + 12):
        text = f"Remark {number} about the island."
        await correct(pipeline, pipeline.memory(text).memory_id, other_mode(pipeline, text))
    [warning] = (await pipeline.assemble(ASKED))["warnings"]
    assert warning["code"] == "interaction_fallback"
    assert "for this user the interaction mode is GENERAL" in warning["message"]
    assert (await pipeline.assemble(ASKED, user="u2"))["warnings"] == []
    assert (await health(pipeline))["fallback"] == []


@pytest.mark.parametrize("mode", ["DREAMING", None])
async def test_unknown_interaction_mode_is_an_invalid_value(pipeline: InMemoryPipeline, mode: Any) -> None:
    memory_id = await say(pipeline, "violin")
    error = (await correct(pipeline, memory_id, mode))["error"]
    assert error["code"] == "invalid_value"
    assert error["field"] == "arguments.interaction_mode"
