"""What contexts are based on: logged without texts, shown with turns, rated, ended by a `forget` of the user."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message, turn_message

QUERY = "where is the spare key?"


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path, more_settings={"context_log": "ids"}).running() as running:
        yield running


async def say(pipeline: InMemoryPipeline, text: str, turn_id: str) -> str:
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, turn_id))
    memory_id: str = reply["result"]["memory_id"]
    return memory_id


async def assemble(pipeline: InMemoryPipeline) -> dict[str, Any]:
    made: dict[str, Any] = (await pipeline.assemble(QUERY, min_score=0))["result"]
    return made


def logged(pipeline: InMemoryPipeline) -> list[Any]:
    records = pipeline.topics.records(pipeline.names.contexts)
    return [None if record.value is None else json.loads(record.value) for record in records]


async def test_a_context_leaves_a_record_without_texts(pipeline: InMemoryPipeline) -> None:
    key = await say(pipeline, "The spare key is under the third pot.", "t-1")
    made = await assemble(pipeline)
    [record] = logged(pipeline)
    assert [reference["memory_id"] for reference in record["references"]] == [key]
    assert record["context_id"] == made["context_id"]
    assert record["query_sha256"] == hashlib.sha256(QUERY.encode()).hexdigest()
    assert record["scope"] == {"user_id": "u1", "project_id": "default"}
    assert "pot" not in json.dumps(record)
    assert "shown" not in made


async def test_its_memories_are_shown_with_their_turns(pipeline: InMemoryPipeline) -> None:
    kept, gone = [await say(pipeline, f"The spare key {n} is under the pot.", f"t-{n}") for n in range(2)]
    context_id = (await assemble(pipeline))["context_id"]
    await pipeline.command("forget", memory_id=gone)
    shown = (await pipeline.command("get_context", context_id=context_id))["result"]
    references = {reference["memory_id"]: reference for reference in shown["references"]}
    assert references[kept]["turns"][0]["turn_id"] == "t-0"
    assert references[kept]["turns"][0]["offset"] == pipeline.memory("The spare key 0 is under the pot.").latest
    assert references[gone]["forgotten"] is True
    assert references[gone]["turns"] == []


async def test_a_rating_is_an_event_and_counted(pipeline: InMemoryPipeline) -> None:
    key = await say(pipeline, "The spare key is under the third pot.", "t-1")
    context_id = (await assemble(pipeline))["context_id"]
    assert (await pipeline.command("rate", context_id=context_id, useful=[key]))["result"] == {"rated": 1}
    rating = logged(pipeline)[-1]
    assert rating["schema"] == "rating.v1"
    assert rating["useful"] == [key]
    assert rating["mode"] == "general"
    assert b'modestream_ratings_total{mode="general",revision="0",useful="true"} 1.0' in pipeline.meters.exposition()
    [week] = (await pipeline.command("health"))["result"]["telemetry"]["weeks"]
    assert week["modes"]["general"]["useful"] == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"useful": ["no reference"]}, "arguments.useful"), ({"not_useful": ["no reference"]}, "arguments.not_useful")],
)
async def test_only_references_are_rated(pipeline: InMemoryPipeline, arguments: dict[str, Any], field: str) -> None:
    await say(pipeline, "The spare key is under the third pot.", "t-1")
    context_id = (await assemble(pipeline))["context_id"]
    error = (await pipeline.command("rate", context_id=context_id, **arguments))["error"]
    assert error["code"] == "invalid_value"
    assert error["field"] == field


async def test_forgetting_a_user_is_a_tombstone(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, "The spare key is under the third pot.", "t-1")
    await assemble(pipeline)
    await pipeline.ask(pipeline.names.commands, {**command_message("forget"), "arguments": {"user": True}})
    assert logged(pipeline)[-1] is None


async def test_by_default_nothing_is_logged(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path).running() as pipeline:
        await say(pipeline, "The spare key is under the third pot.", "t-1")
        await assemble(pipeline)
        assert logged(pipeline) == []
