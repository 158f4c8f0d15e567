"""A deployment without a vector index: words alone, nothing waits, and vectors come when it gets one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.consolidation import consolidate
from tests.worlds.in_memory_pipeline import InMemoryPipeline

NONE = {"vector_index": "none"}


def running(directory: Path, **settings: Any) -> Any:
    return InMemoryPipeline(directory / "data", more_settings=settings).running()


@pytest.fixture
async def wordy(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline without a vector index, with one memory."""
    async with running(tmp_path, **NONE) as pipeline:
        await pipeline.remember("The kettle is blue.")
        await pipeline.topics.settled()
        yield pipeline


def restarted(pipeline: InMemoryPipeline, vector_index: str) -> Any:
    pipeline.settings = pipeline.settings.model_copy(update={"vector_index": vector_index})
    return pipeline.running()


def statuses(pipeline: InMemoryPipeline) -> set[str]:
    return {memory.embedding.status for memory in pipeline.memories.all()}


async def test_memory_is_found_by_its_words(wordy: InMemoryPipeline) -> None:
    found = (await wordy.retrieve("what is blue?"))["result"]
    assert [hit["text"] for hit in found["hits"]] == ["The kettle is blue."]
    assert found["strategy"] == "lexical"


async def test_no_memory_waits_for_a_vector(wordy: InMemoryPipeline) -> None:
    general = (await wordy.command("health"))["result"]["modes"]["general"]
    assert general["eligible"] == 0
    assert general["pending"] == 0
    assert general["not_applicable"] == 1


@pytest.mark.parametrize("job", ["backfill", "rebuild", "reconcile", "retry_failed"])
async def test_jobs_have_nothing_to_do(wordy: InMemoryPipeline, job: str) -> None:
    done = (await wordy.command(job))["result"]
    assert done["processed"] == 0
    assert done["failed"] == 0
    assert done["skipped"] == 1


async def test_consolidation_ends(wordy: InMemoryPipeline) -> None:
    assert (await consolidate(wordy))["created"] == []


async def test_context_is_assembled(wordy: InMemoryPipeline) -> None:
    request = {"schema": "assemble.v1", "scope": {"user_id": "u1"}, "query": "what is blue?", "budget_tokens": 500}
    assert len((await wordy.ask(wordy.names.retrieve, request))["result"]["references"]) == 1


async def test_vectors_are_made_once_the_deployment_has_an_index(tmp_path: Path) -> None:
    async with running(tmp_path, **NONE) as pipeline:
        await pipeline.remember("The kettle is blue.")
        await pipeline.topics.settled()
    async with restarted(pipeline, "qdrant"):
        await pipeline.until(lambda: statuses(pipeline) == {"ready"})


async def test_vectors_that_are_kept_no_longer_are_not_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.remember("The kettle is blue.")
        await pipeline.topics.settled()
    async with restarted(pipeline, "none"):
        await pipeline.until(lambda: statuses(pipeline) == {"not_applicable"})
        assert (await pipeline.retrieve("what is blue?"))["result"]["strategy"] == "lexical"
