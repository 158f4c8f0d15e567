"""What a command, a job or a trigger was answered for is in the lexical index that the next worker finds."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from streams.adapters.lexical.boundary_counts import SqliteBoundaryCounts
from streams.flow.steps.step import CommittingStep
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline

pytestmark = pytest.mark.usefixtures("no_other_commits")


@pytest.fixture
def no_other_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no step commit the index: a kill may come before it."""

    async def settle(_step: CommittingStep, _finished: Sequence[int]) -> None:
        pass

    monkeypatch.setattr(CommittingStep, "settle", settle)


def committed(pipeline: InMemoryPipeline) -> Mapping[str, int]:
    """Return the number of memories by embedding status, without superseded ones, as the next worker would find it."""
    counts = SqliteBoundaryCounts(pipeline.directory / "partitions")
    found: dict[str, int] = {}
    for partition in range(pipeline.partitions):
        for kind in counts.read(partition, ["u1"])["u1"].kinds:
            found[kind.status] = found.get(kind.status, 0) + kind.memories
    return found


async def test_answered_forget_is_committed(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 3, conversation_id="c0")
    await remember_many(pipeline, 1, "The violin needs a new bow.", conversation_id="c1")
    await pipeline.command("forget", conversation_id="c0")
    assert sum(committed(pipeline).values()) == 1


@pytest.mark.parametrize("job", ["backfill", "rebuild", "reconcile", "refresh"])
async def test_answered_job_is_committed(pipeline: InMemoryPipeline, job: str) -> None:
    await remember_many(pipeline, 3)
    arguments: dict[str, Any] = {} if job == "refresh" else {"mode": "general"}
    await pipeline.command(job, **arguments)
    assert committed(pipeline) == {"ready": 3}


async def test_answered_consolidation_is_committed(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    assert len((await consolidate(pipeline))["superseded"]) == 4
    assert sum(committed(pipeline).values()) == 1
