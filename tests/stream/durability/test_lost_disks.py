"""A pipeline that restarts without a part of its disk: no memory is ready without a vector."""

from pathlib import Path

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline, Lost

TURNS = 5
NEVER_LOST: list[Lost] = []
LOST: list[list[Lost]] = [NEVER_LOST, ["vectors"], ["words"], ["vectors", "words"]]


async def finished(pipeline: InMemoryPipeline, embedded: int) -> None:
    """Run until `embedded` texts are embedded and all records processed, then check all state."""
    async with pipeline.running():
        await pipeline.until(lambda: len(pipeline.embedder.passages) >= embedded)
        await pipeline.until(lambda: not pipeline.unfinished_vectors())
        await pipeline.topics.settled()
        assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}
        ids = [memory.memory_id for memory in pipeline.memories.all()]
        assert len(ids) == TURNS
        assert await pipeline.vectors_in("general", pipeline.space("general", "general").fingerprint, ids) == set(ids)
        found = await pipeline.retrieve("crate hall")
        assert found["result"]["strategy"] == "hybrid"
        assert len(found["result"]["hits"]) == TURNS
        assert found.get("warnings", []) == []
    assert len(pipeline.embedder.passages) == embedded


async def stored_turns(directory: Path) -> InMemoryPipeline:
    """Return a pipeline that stopped before it wrote vectors."""
    pipeline = InMemoryPipeline(directory)
    pipeline.index.down()
    async with pipeline.running():
        for number in range(TURNS):
            await pipeline.remember(f"Crate {number} is in the hall.")
        await pipeline.topics.until(lambda: not pipeline.topics.unacknowledged(pipeline.names.turns))
    pipeline.index.up()
    return pipeline


async def stored_vectors(directory: Path) -> InMemoryPipeline:
    pipeline = await stored_turns(directory)
    await finished(pipeline, TURNS)
    return pipeline


async def unread_reports(directory: Path) -> InMemoryPipeline:
    before = await stored_turns(directory / "told")
    told = before.copy_to(directory / "vectors")
    await finished(told, TURNS)
    pipeline = before.copy_to(directory / "unread")
    pipeline.index = told.index
    pipeline.topics.copy_from(told.topics)
    pipeline.topics.forget_acknowledged(TURNS, [pipeline.names.embedded])
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"pending"}
    return pipeline


@pytest.mark.parametrize("lost", LOST, ids="-".join)
async def test_lost_part_of_the_disk_is_rebuilt(tmp_path: Path, lost: list[Lost]) -> None:
    pipeline = (await stored_vectors(tmp_path / "before")).copy_to(tmp_path / "lost")
    pipeline.lose_files(*lost)
    await finished(pipeline, TURNS if "vectors" in lost else 0)


@pytest.mark.parametrize("lost", LOST, ids="-".join)
async def test_report_of_a_lost_vector_makes_no_memory_ready(tmp_path: Path, lost: list[Lost]) -> None:
    pipeline = (await unread_reports(tmp_path)).copy_to(tmp_path / "lost")
    pipeline.lose_files(*lost)
    await finished(pipeline, TURNS if "vectors" in lost else 0)


async def test_unread_reports_wait_for_the_vector_index(tmp_path: Path) -> None:
    pipeline = await unread_reports(tmp_path)
    pipeline.index.down()
    async with pipeline.running():
        await pipeline.until_waiting_for("vector index")
        assert {memory.embedding.status for memory in pipeline.memories.all()} == {"pending"}
        pipeline.index.up()
        await pipeline.topics.settled()
        assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}
