"""The job `verify`: what words and vectors of a boundary lack, or have besides its records. It changes nothing.

Enters: a job. Leaves: its answer, None if the partition has left meanwhile: the worker that has it now runs it again.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from agents.embedding.maintain import InspectedMemory, Maintain
from schemas.internal.changes import Job, JobProgress
from schemas.internal.events import Embedded
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.worker_context import WorkerContext

PAGE_SIZE = 100
"""Memories that are inspected at once: some milliseconds."""

MAX_EXAMPLES = 20
"""Ids of each kind in the answer."""

FOUND = ("words_orphaned", "vectors_missing", "vectors_orphaned", "pending", "stale", "failed")
"""What is counted; the first three are repaired by `reconcile` and by starting anew, the others by their own jobs."""


class Verification:
    """Counts of what was found, with some ids of each kind."""

    def __init__(self) -> None:
        self.checked = 0
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {name: [] for name in FOUND}

    def add(self, memory_ids: Sequence[str], inspected: Sequence[InspectedMemory]) -> None:
        """Add a page: ids in the lexical index, and what is stored of them."""
        self.checked += len(memory_ids)
        for memory_id in set(memory_ids) - {inspection.memory.memory_id for inspection in inspected}:
            self.note("words_orphaned", memory_id)
        for inspection in inspected:
            status = inspection.memory.embedding.status
            if status == "ready" and inspection.due in ("make", "fail"):
                self.note("vectors_missing", inspection.memory.memory_id)
            elif status in ("pending", "stale", "failed"):
                self.note(status, inspection.memory.memory_id)

    def note(self, name: str, memory_id: str) -> None:
        """Count one, and keep its id if there is room."""
        self._counts[name] += 1
        if len(self._examples[name]) < MAX_EXAMPLES:
            self._examples[name].append(memory_id)

    def answer(self, job: Job) -> dict[str, Any]:
        counts = {name: self._counts[name] for name in FOUND}
        examples = {name: sorted(ids) for name, ids in self._examples.items() if ids}
        return {"job_id": job.job_id, "checked": self.checked, **counts, "examples": examples}


async def run_verification(
    job: Job, tally: JobProgress, maintain: Maintain, partition: int, ctx: WorkerContext
) -> dict[str, Any] | None:
    """Inspect all memories of the job; progress counts them."""
    found = Verification()
    ids = maintain.affected_ids(job)
    tally.total = len(ids)
    for page in batches(ids, PAGE_SIZE):
        if not ctx.is_assigned(partition):
            return None
        inspect = partial(maintain.inspect, job, page)
        found.add(page, await until_available(inspect, "vector index", ctx.meters))
        tally.processed += len(page)

    async def orphans() -> list[Embedded]:
        return [event async for event in maintain.orphans(job)]

    for event in await until_available(orphans, "vector index", ctx.meters):
        found.note("vectors_orphaned", event.memory_id)
    return found.answer(job)
