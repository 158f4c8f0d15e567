"""Partitions that arrive are prepared before their events flow, or the process ends; those that leave are closed."""

from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.state.modes import GENERAL
from streams.bootstrap.partition_assignment import PartitionAssignment
from streams.runtime.partition_locks import PartitionLocks

OWN = {0, 2}


class EndedProcess(Exception):
    """Raised where the process would end."""


class AssignmentHarness:
    """A worker that has the partitions of `OWN`, with a Faust app of the attributes that an assignment uses."""

    def __init__(self, directory: Path) -> None:
        self.locks = PartitionLocks(directory)
        for partition in OWN:
            self.locks.try_copy(partition)
        self.model = "ready"
        self.fails: BaseException | None = None
        self.leaves_meanwhile = False
        self.done: list[object] = []
        self.app: Any = SimpleNamespace(partition_locks=self.locks, membership=self, should_stop=False)
        parts: Any = self
        self.ctx: Any = SimpleNamespace(progress=self, stores=SimpleNamespace(words=self))
        self.assignment = PartitionAssignment(
            self.app, parts, parts, parts, parts, SimpleNamespace(release=self.close_vectors), self.ctx,  # type: ignore[arg-type]
            on_prepared=lambda partitions: self.done.append(("prepared", partitions)),
            end_process=self.end,
        )  # fmt: skip

    def partitions(self) -> set[int]:
        return OWN

    def status(self) -> dict[str, dict[str, str]]:
        found, self.model = self.model, "ready"
        return {GENERAL: {"state": found}}

    async def prepare(self, partitions: Collection[int]) -> None:
        self.done.append(("prepare", partitions))
        if self.leaves_meanwhile:
            self.locks.release(2)
        if self.fails is not None:
            raise self.fails

    async def confirm(self) -> None:
        self.done.append("confirmed")

    def leave(self, partition: int) -> None:
        self.done.append(("left", partition))

    def release(self, partition: int) -> None:
        self.done.append(("words", partition))

    async def close_vectors(self, partition: int) -> None:
        self.done.append(("vectors", partition))

    def end(self) -> None:
        raise EndedProcess


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[AssignmentHarness]:
    worker = AssignmentHarness(tmp_path)
    yield worker
    worker.locks.close()


@pytest.mark.parametrize("model", ["ready", "missing", "loading"])
async def test_partitions_are_prepared_once_the_general_model_was_tried(worker: AssignmentHarness, model: str) -> None:
    worker.model = model
    await worker.assignment.arrived()
    assert worker.done == [("prepare", OWN), "confirmed", ("prepared", OWN)]


async def test_partitions_that_have_left_are_not_prepared(worker: AssignmentHarness) -> None:
    worker.locks.release(2)
    await worker.assignment.arrived()
    assert worker.done == []


async def test_failed_preparation_ends_the_process(worker: AssignmentHarness) -> None:
    worker.fails = OSError("the disk is full")
    with pytest.raises(EndedProcess):
        await worker.assignment.arrived()


async def test_failed_preparation_of_partitions_that_left_is_no_defect(worker: AssignmentHarness) -> None:
    worker.fails, worker.leaves_meanwhile = OSError("the file is another worker's"), True
    await worker.assignment.arrived()
    assert worker.done == [("prepare", OWN)]


async def test_cancelled_preparation_of_a_worker_that_stops_is_no_defect(worker: AssignmentHarness) -> None:
    worker.fails, worker.app.should_stop = OSError("stopped"), True
    with pytest.raises(OSError, match="stopped"):
        await worker.assignment.arrived()


async def test_all_stores_of_a_partition_that_leaves_are_closed(worker: AssignmentHarness) -> None:
    await worker.assignment.left(2)
    assert worker.done == [("left", 2), ("left", 2), ("words", 2), ("vectors", 2)]
