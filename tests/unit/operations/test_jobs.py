import asyncio
from pathlib import Path

from modestream_client import MemoryServiceError
from modestream_client.results import FinishedJob

from operations.deployment import Progress
from operations.jobs import JobTotals, Journal, run_for_each
from schemas.messages.published import Boundary


def users(*names: str) -> list[Boundary]:
    return [Boundary(boundary=name, scope={"user_id": name}) for name in names]


class Job:
    """A job that fails for some users, and counts how many run at the same time."""

    def __init__(self, *, refused: frozenset[str] = frozenset(), failing: frozenset[str] = frozenset()) -> None:
        self.refused, self.failing = refused, failing
        self.ran: list[str] = []
        self.running = self.most = 0

    async def __call__(self, boundary: Boundary) -> FinishedJob:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        self.ran.append(boundary.boundary)
        if boundary.boundary in self.refused:
            raise MemoryServiceError("unknown_mode", "there is none")
        return FinishedJob(job_id="j", processed=2, skipped=1, failed=int(boundary.boundary in self.failing))


async def run(job: Job, journal: Path, at_once: int = 2) -> JobTotals:
    with Progress("rebuild", 4, "users") as progress:
        return await run_for_each(users("a", "b", "c", "d"), job, Journal(journal), progress, at_once)


async def test_counts_are_summed_and_the_pace_is_bounded(tmp_path: Path) -> None:
    job = Job()
    totals = await run(job, tmp_path / "journal")
    assert totals.users == 4
    assert totals.processed == 8
    assert totals.skipped == 4
    assert job.most == 2
    assert totals.is_clean


async def test_failed_users_are_run_again_and_finished_ones_are_not(tmp_path: Path) -> None:
    journal = tmp_path / "run" / "journal"
    totals = await run(Job(refused=frozenset("b"), failing=frozenset("c")), journal)
    assert not totals.is_clean
    assert totals.failures == {"b": "unknown_mode: there is none"}
    again = Job()
    assert (await run(again, journal)).resumed == 2
    assert again.ran == ["b", "c"]


async def test_run_without_failures_begins_anew_the_next_time(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    await run(Job(), journal)
    again = Job()
    await run(again, journal)
    assert len(again.ran) == 4


def test_torn_last_line_is_a_user_that_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path).finish("a")
    with path.open("ab") as file:
        file.write(b'\n"b')
    assert Journal(path).done == {"a"}
    Journal(path).finish("c")
    assert Journal(path).done == {"a", "c"}
