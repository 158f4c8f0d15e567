"""A draft of the pipelines on the recorded requests of a user: what comes out otherwise, and that nothing else does."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streams.flow.runs.recorder import RunOptions
from tests.stream.pipelines.test_custom_steps import said, stored
from tests.stream.pipelines.test_editing import REDACT, edit, insert
from tests.stream.pipelines.test_step_settings import config
from tests.worlds.guarded_gateway import gateway_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

TEXT = "I live in Lisbon with my family since 2019. I love hiking in the mountains."
STRICT = config("retrieve.rank", min_score=1.0)


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A worker that records all runs with their texts, and has a turn, a question and a context."""
    async with InMemoryPipeline(tmp_path, run_options=RunOptions(sample=1, texts=True)).running() as world:
        await said(world, TEXT)
        await world.topics.settled()
        await world.retrieve("where do I live?")
        await world.assemble("where do I live?", min_score=0)
        await world.topics.settled()
        yield world


async def compared(world: InMemoryPipeline, *edits: Json, last: int = 10) -> Json:
    reply = await edit(world, *edits, dry_run=True, compare_last=last)
    return dict(reply["result"]["comparison"])


async def test_requests_that_come_out_otherwise_are_listed(recorded: InMemoryPipeline) -> None:
    comparison = await compared(recorded, STRICT)
    assert {each["kind"] for each in comparison["differences"]} == {"retrieve.v1", "assemble.v1"}
    assert comparison["compared"] == 3


async def test_turns_are_compared_by_their_items(recorded: InMemoryPipeline) -> None:
    [difference] = (await compared(recorded, config("memorize.extract_items", max_items=1)))["differences"]
    assert difference["memory_id"] == recorded.memory(TEXT).memory_id
    assert len(difference["removed"]) == 1


async def test_what_changes_nothing_is_no_difference(recorded: InMemoryPipeline) -> None:
    assert (await compared(recorded, REDACT))["differences"] == []


async def test_failing_step_of_a_draft_is_a_difference(recorded: InMemoryPipeline) -> None:
    broken = insert("retrieve.broken", "retrieve.receive", "BrokenQuery", on_failure="reject")
    [difference] = [each for each in (await compared(recorded, broken))["differences"] if each["kind"] == "retrieve.v1"]
    assert difference["warnings"] == {"before": [], "after": ["internal"]}


async def test_comparison_changes_and_writes_nothing(recorded: InMemoryPipeline) -> None:
    await compared(recorded, insert("memorize.echo", "memorize.ingest", "Echoes"), STRICT)
    await recorded.topics.settled()
    assert stored(recorded) == [TEXT]
    assert recorded.pipelines.status()["running"] == 0


async def test_only_a_dry_run_compares(recorded: InMemoryPipeline) -> None:
    error = (await edit(recorded, STRICT, compare_last=5))["error"]
    assert error["field"] == "arguments.compare_last"


async def test_questions_without_recorded_texts_are_not_compared(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, run_options=RunOptions(sample=1)).running() as world:
        await said(world, TEXT)
        await world.retrieve("where do I live?")
        assert (await compared(world, STRICT))["requests"] == 1


async def test_user_is_named_over_http(recorded: InMemoryPipeline) -> None:
    body = {"edits": [STRICT], "dry_run": True, "compare_last": 5, "compare_user": "u1"}
    async with gateway_of(recorded, policy=None) as gateway:
        answered = await gateway.ask("POST", "/v1/pipelines/edits", json=body)
    assert answered.json()["comparison"]["changed"] == 2
