"""Rolling restarts: one worker at a time is away, and one that does not come back ends the restart."""

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

from streams.up.fleet import RollingRestart
from streams.up.workers import ReportedStatus


class FakeWorkers:
    """Workers that each serve one partition, and need some looks to come back. `away` has those that are."""

    def __init__(self, number: int, looks: int = 3, never_back: Collection[str] = ()) -> None:
        self.steps: list[str] = []
        self.away: dict[str, int] = {}
        self.most_away = 0
        self.looks = looks
        self.never_back = never_back
        self.all = [FakeWorker(f"worker-{each}", each, self) for each in range(number)]


class FakeWorker:
    """Implements `streams.up.fleet.RestartableWorker`."""

    def __init__(self, name: str, partition: int, workers: FakeWorkers) -> None:
        self.name = name
        self._partition = partition
        self._workers = workers

    async def prepare(self) -> None:
        """Note it: the worker still serves."""
        self._workers.steps.append(f"load {self.name}")

    async def restart(self) -> None:
        """Be away for some looks."""
        self._workers.steps.append(f"end {self.name}")
        self._workers.away[self.name] = self._workers.looks
        self._workers.most_away = max(self._workers.most_away, len(self._workers.away))

    async def status(self) -> ReportedStatus | None:
        """Answer nothing, then recovering, then the partition."""
        looks = self._workers.away.get(self.name, 0)
        if looks and self.name not in self._workers.never_back:
            self._workers.away[self.name] = looks - 1
            if looks == 1:
                del self._workers.away[self.name]
        if looks > 1:
            return None
        return ReportedStatus(frozenset({self._partition}), recovering=looks == 1)


def progress(file: Path) -> object:
    return json.loads(file.read_text())


async def test_workers_are_restarted_one_after_another(tmp_path: Path) -> None:
    workers, printed = FakeWorkers(3), list[str]()
    assert await RollingRestart(workers.all, tmp_path / "state.json", printed.append).run()
    assert workers.steps == [f"{step} worker-{number}" for number in range(3) for step in ("load", "end")]
    assert workers.most_away == 1
    assert progress(tmp_path / "state.json") == {"state": "done", "worker": ""}
    assert len(printed) == 3


async def test_worker_that_does_not_come_back_ends_the_restart(tmp_path: Path) -> None:
    workers, printed = FakeWorkers(3, never_back={"worker-1"}), list[str]()
    assert not await RollingRestart(workers.all, tmp_path / "state.json", printed.append, back_s=0.5).run()
    assert workers.steps[-1] == "end worker-1"
    assert progress(tmp_path / "state.json") == {"state": "failed", "worker": "worker-1"}
    assert "worker-1 is not back" in printed[-1]


async def test_partition_that_another_worker_has_taken_counts_as_served(tmp_path: Path) -> None:
    workers = FakeWorkers(2, looks=1)
    taking_over = workers.all[1]
    serves_both = ReportedStatus(frozenset({0, 1}), recovering=False)

    async def status() -> ReportedStatus:
        await asyncio.sleep(0)
        return serves_both

    taking_over.status = status  # type: ignore[method-assign]
    assert await RollingRestart(workers.all, tmp_path / "state.json", lambda _: None, back_s=5.0).run()
