"""What jobs do with files: read failed ones again, and remove bytes that no memory has."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from agents.memory.remember import Remember
from agents.rules.memory.resources import statuses_of
from schemas.internal.changes import Job, JobProgress
from schemas.state.files import boundary_prefix
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.flow.worker_context import WorkerContext

POLL_INTERVAL_S = 0.2
"""Between two looks at files that are read again."""


class FileJobs:
    """The part of jobs that is about files."""

    def __init__(self, remember_at: Callable[[int], Remember], ctx: WorkerContext) -> None:
        self._remember_at = remember_at
        self._ctx = ctx

    async def retry(self, job: Job, partition: int, tally: JobProgress) -> None:
        """Have the failed files of a job's turns read again, and wait until they are."""
        keep, files = self._remember_at(partition).files, self._ctx.stores.files
        failed = [name for name, statuses in files.turns(partition, job.scope.boundary).items() if statuses.failed]
        again = [memory_id for memory_id in failed if self._covers(job, self._memory(partition, memory_id))]
        writing = await self._ctx.commit.begin(partition)
        try:
            counts = {memory_id: keep.retry(memory_id) for memory_id in again}
        finally:
            writing.finish([])
        tally.total += sum(counts.values())
        for memory_id, count in counts.items():
            while (turn := self._memory(partition, memory_id)) is not None and statuses_of(turn).pending:
                if not self._ctx.is_assigned(partition):
                    return
                await asyncio.sleep(POLL_INTERVAL_S)
            still = 0 if turn is None else min(statuses_of(turn).failed, count)
            tally.failed += still
            tally.processed += count - still

    async def remove_orphans(self, job: Job, partition: int, tally: JobProgress) -> None:
        """Remove bytes of a user that no memory has, and that have lain so long that no turn is on its way."""
        store, boundary = self._ctx.file_bytes, job.scope.boundary
        if store is None:
            return
        stored = await until_available(partial(store.find, boundary_prefix(boundary)), "files", self._ctx.meters)
        until = self._ctx.clock.now() - timedelta(seconds=self._ctx.files_grace_s)
        orphans = []
        for found in stored:
            _, sha256, memory_id = found.key.split("/")
            holders = self._ctx.stores.files.holders(partition, boundary, sha256)
            if found.modified <= until and memory_id not in (*holders.memories, *holders.former):
                orphans.append(found.key)
        await until_available(partial(store.remove, orphans), "files", self._ctx.meters)
        tally.orphans += len(orphans)

    def _memory(self, partition: int, memory_id: str) -> Memory | None:
        return self._ctx.stores.memories.get(partition, memory_id)

    def _covers(self, job: Job, turn: Memory | None) -> bool:
        if turn is None or job.mode not in (None, turn.mode):
            return False
        return job.all_projects or turn.scope == job.scope.model_dump()
