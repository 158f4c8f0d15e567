"""Jobs on their topic: each goes through the vectors of a boundary beside everything else, and is answered at its end.

Nothing is noted on the way: a job that was cut off by a kill comes again, and what it has had made says so on its
record. The keeper is told of so many memories at once that the indexer always has work, and of no more, so that new
turns are not held up; each is still found meanwhile as it was before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict

from pydantic import BaseModel

from agents.embedding.maintain import InspectedMemory, Maintain
from schemas.jobs import Job, JobProgress
from schemas.records import Record
from schemas.replies import SuccessReply
from streams.batching import batches
from streams.flow.requests.channel import HandlerResult, ReplyOptions
from streams.flow.requests.events import event_out
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext

JOB_PAGE_SIZE = 100
"""Memories that are looked at in one go: some milliseconds."""

MAX_AWAITED_VECTORS = 300
"""Memories whose vectors a job awaits at the same time: a second or two of the indexer's work."""

JOB_POLL_INTERVAL_S = 0.1
"""Between two looks at what became of them."""

MAX_CONCURRENT_JOBS = 4
"""Jobs of one worker that run at the same time; others wait for their turn."""


class RunJobs:
    """Handles `job.v1`: checks the vectors of a boundary, and has missing and stale ones made."""

    def __init__(self, maintain_at: Callable[[int], Maintain], ctx: WorkerContext) -> None:
        self._maintain_at = maintain_at
        self._ctx = ctx
        self._room = asyncio.Semaphore(MAX_CONCURRENT_JOBS)

    async def __call__(self, job: Job, record: Record, _options: ReplyOptions) -> HandlerResult:
        """Run the job to its end."""
        async with self._room:
            with self._ctx.jobs.running(job) as tally:
                running = JobRun(job, tally, self._maintain_at(record.partition), record.partition, self._ctx)
                # The worker that has the partition now gets the job again, and answers it.
                if not await running.run_to_end():
                    return HandlerResult(None)
        return HandlerResult(SuccessReply(_summary(tally)), pending_writes=self._noted(job, record.partition))

    def _noted(self, job: Job, partition: int) -> list[Awaitable[None]]:
        if job.kind not in ("backfill", "rebuild"):
            return []
        modes, now = self._maintain_at(partition).modes(job), self._ctx.clock.now()
        return self._ctx.jobs.record_backfill(partition, job.scope.boundary, modes, now)


class JobRun:
    """One job that runs."""

    def __init__(self, job: Job, tally: JobProgress, maintain: Maintain, partition: int, ctx: WorkerContext) -> None:
        self._job, self._tally, self._maintain = job, tally, maintain
        self._partition = partition
        self._ctx = ctx
        self._awaited: list[InspectedMemory] = []

    async def run_to_end(self) -> bool:
        """Go through all of it; False where the partition has left."""
        ids = self._maintain.affected_ids(self._job)
        self._tally.total = len(ids)
        for page in batches(ids, JOB_PAGE_SIZE):
            for looked in await self._looked_at(page):
                await self._begin(looked)
            await self._settle(MAX_AWAITED_VECTORS)
            if not self._is_here():
                return False
        await self._settle(0)
        if self._job.kind == "reconcile":
            await self._remove_orphans()
        return self._is_here()

    async def _looked_at(self, page: Sequence[str]) -> list[InspectedMemory]:
        def look() -> Awaitable[list[InspectedMemory]]:
            return self._maintain.inspect(self._job, page)

        found = await until_available(look, "vector index", self._ctx.meters)
        self._tally.skipped += len(page) - len(found)
        return found

    async def _begin(self, looked: InspectedMemory) -> None:
        match looked.due:
            case "skip":
                self._tally.skipped += 1
            case "done":
                self._tally.processed += 1
            case "fail":
                self._tally.failed += 1
            case "await":
                self._awaited.append(looked)
            case "make":
                await self._tell(self._maintain.reembed_event(looked))
                self._awaited.append(looked)

    async def _settle(self, most: int) -> None:
        """Wait until no more than so many vectors are awaited."""
        while True:
            self._awaited = [looked for looked in self._awaited if not self._is_settled(looked)]
            if len(self._awaited) <= most or not self._is_here():
                return
            await asyncio.sleep(JOB_POLL_INTERVAL_S)

    def _is_settled(self, looked: InspectedMemory) -> bool:
        became = self._maintain.outcome_of(looked)
        if became is not None:
            setattr(self._tally, became, getattr(self._tally, became) + 1)
            self._tally.stale_cleared += looked.is_stale and became == "processed"
        return became is not None

    async def _remove_orphans(self) -> None:
        async def told() -> int:
            found = [event async for event in self._maintain.orphans(self._job)]
            for event in found:
                await self._tell(event)
            return len(found)

        self._tally.orphans = await until_available(told, "vector index", self._ctx.meters)

    async def _tell(self, event: BaseModel) -> None:
        out = event_out(self._ctx.topics.embedded, self._job.scope.boundary, event)
        await await_all([await self._ctx.publisher.send(out)])

    def _is_here(self) -> bool:
        return self._ctx.is_assigned(self._partition)


def _summary(tally: JobProgress) -> dict[str, object]:
    """What a job is answered with."""
    counted = {name: number for name, number in asdict(tally).items() if name != "job"}
    return {"job_id": tally.job.job_id, **counted}
