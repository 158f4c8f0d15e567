"""A record that ended three processes: a dead letter `poison` and an error reply, and those behind it are handled."""

import json
from pathlib import Path

import pytest

from schemas.messages.records import Headers, Record
from streams.flow.consolidation.run_consolidations import RunConsolidations
from streams.flow.death_counts import MAX_DEATHS, DeathCounts, record_name
from streams.flow.steps.answer import AnswerQuery
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message

REPLY: Headers = (("reply_to", b"memory.replies"), ("correlation_id", b"bad"))


def die(file: Path, consumer: str, record: Record, times: int) -> DeathCounts:
    """End processes while a record's code runs, and return what the next one counts."""
    for _ in range(times):
        DeathCounts(file).enter(record_name(consumer, record))
    return DeathCounts(file)


@pytest.mark.parametrize("deaths", [2, 3])
async def test_turn_that_ended_three_processes_is_a_dead_letter(tmp_path: Path, deaths: int) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    bad = await pipeline.publish(pipeline.names.turns, turn_message("The bad turn.", "t-bad"), headers=REPLY)
    await pipeline.remember("The good turn is behind it.")
    pipeline.deaths = die(tmp_path / "run" / "under-way", "memory.turns-Remember", bad, deaths)
    async with pipeline.running():
        texts = await pipeline.texts("turn")
        [reply] = pipeline.replies(b"bad")
    assert "The good turn is behind it." in texts
    assert ("The bad turn." in texts) == (deaths < 3)
    letters = [(dead_letter.value, dead_letter.header("dead_letter_code")) for dead_letter in pipeline.dead_letters()]
    assert letters == ([] if deaths < 3 else [(bad.value, b"poison")])
    assert reply.get("error", {}).get("code") == (None if deaths < 3 else "internal")


@pytest.mark.parametrize("topic", ["retrieve", "consolidate"])
async def test_request_whose_code_exits_ends_the_process_three_times_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    async def leave(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr(AnswerQuery, "__call__", leave)
    monkeypatch.setattr(RunConsolidations, "__call__", leave)
    pipeline = InMemoryPipeline(tmp_path)
    question = {"schema": "retrieve.v1", "query": "what?"} if topic == "retrieve" else {"schema": "consolidate.v1"}
    message = {**question, "scope": {"user_id": "u1", "project_id": "p1"}}
    await pipeline.publish(getattr(pipeline.names, topic), message, headers=REPLY)
    for _ in range(MAX_DEATHS):
        pipeline.deaths, pipeline.defects = DeathCounts(tmp_path / "f"), []
        # The world of a worker that ends by a defect fails at its end.
        with pytest.raises(AssertionError):
            async with pipeline.running():
                await pipeline.until(lambda: bool(pipeline.defects))
        assert pipeline.defects == ["an agent ended"]
    pipeline.deaths, pipeline.defects = DeathCounts(tmp_path / "f"), []
    async with pipeline.running():
        await pipeline.topics.settled()
    assert [dead_letter.header("dead_letter_code") for dead_letter in pipeline.dead_letters()] == [b"poison"]


async def test_question_is_a_dead_letter_too(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    question = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "what?"}
    bad = await pipeline.publish(pipeline.names.retrieve, question, headers=REPLY)
    pipeline.deaths = die(tmp_path / "f", "memory.retrieve-Retrieve-Assemble-List-DrawMap-Answer", bad, 3)
    async with pipeline.running():
        await pipeline.topics.settled()
    assert pipeline.replies(b"bad")[0]["error"]["code"] == "internal"
    assert [dead_letter.header("dead_letter_code") for dead_letter in pipeline.dead_letters()] == [b"poison"]


async def test_event_that_kills_one_of_its_readers_is_a_dead_letter(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await pipeline.remember("We must always validate the input of users.")
        await pipeline.topics.settled()
    names = pipeline.names
    assert pipeline.topics.records(names.learned)
    for topic, consumer in (
        (names.learned, "memory.learned-Categorize"),
        (names.remembered, "memory.remembered-Embed-Understand-DrawMap"),
        (names.embedded, "memory.embedded-Remember"),
    ):
        bad = pipeline.topics.records(topic)[-1]
        pipeline.topics.forget_acknowledged(1, [topic])
        pipeline.deaths = die(tmp_path / topic, consumer, bad, 3)
        async with pipeline.running():
            await pipeline.topics.settled()
        letter = pipeline.dead_letters()[-1]
        assert letter.value == bad.value
        assert letter.header("dead_letter_code") == b"poison"
        assert json.loads(bad.value or b"")
