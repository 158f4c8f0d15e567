"""Jobs on their topic: each checks the vectors of a boundary in the background, and is answered at its end.

A job stores no progress: if a crash interrupts it, it is redelivered, and the records show which vectors are done. The
number of requested vectors is limited, so that the indexer always has work and new turns are not delayed; memories stay
searchable by their old vectors.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel

from agents.embedding.maintain import CompareEmbedders, InspectedMemory, Maintain, VectorPair
from agents.memory.remember import Remember
from agents.rules.memory.resources import statuses_of
from agents.rules.modes.embedder_comparison import describe
from schemas.failures import ModelMissing
from schemas.internal.changes import Job, JobProgress
from schemas.internal.events import Embedded
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply, warn_of_unknown
from schemas.state.files import boundary_prefix, without_upload
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.batching import batches
from streams.fair_queue import FairTurns
from streams.flow.publisher import await_all
from streams.flow.requests.channel import HandlerResult, ReplyOptions, event_out
from streams.flow.steps.evaluate import EvaluateRevisions, run_evaluation
from streams.flow.steps.refresh import RunRefreshes
from streams.flow.worker_context import WorkerContext

# The job `verify`: what words and vectors of a boundary lack, or have besides its records. It changes nothing. None is
# its answer if the partition has left meanwhile: the worker that has it now runs it again.

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
        """Add a page: ids in the lexical index, and the stored state of each."""
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


POLL_INTERVAL_S = 0.2
"""Between two looks at files that are read again."""


class FileJobs:
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
        """Remove bytes that no memory has, those of a turn's repeated uploads but the first, and unfinished ones.

        All have lain so long that no turn that brings them is on its way.
        """
        store, boundary = self._ctx.file_bytes, job.scope.boundary
        if store is None:
            return
        stored = await until_available(partial(store.find, boundary_prefix(boundary)), "files", self._ctx.meters)
        parts = await until_available(partial(store.unfinished, boundary_prefix(boundary)), "files", self._ctx.meters)
        until = self._ctx.clock.now() - timedelta(seconds=self._ctx.files_grace_s)
        orphans, kept = [part.key for part in parts if part.modified <= until], set[str]()
        for found in sorted(stored, key=lambda found: (found.modified, found.key)):
            of_turn = without_upload(found.key)
            _, sha256, memory_id = of_turn.split("/")
            holders = self._ctx.stores.files.holders(partition, boundary, sha256)
            is_held = memory_id in (*holders.memories, *holders.former)
            if found.modified <= until and (of_turn in kept or not is_held):
                orphans.append(found.key)
            kept.add(of_turn)
        await until_available(partial(store.remove, orphans), "files", self._ctx.meters)
        tally.orphans += len(orphans)

    def _memory(self, partition: int, memory_id: str) -> Memory | None:
        return self._ctx.stores.memories.get(partition, memory_id)

    def _covers(self, job: Job, turn: Memory | None) -> bool:
        if turn is None or job.mode not in (None, turn.mode):
            return False
        return job.all_projects or turn.scope == job.scope.model_dump()


JOB_PAGE_SIZE = 100
"""Memories that are inspected at once: some milliseconds."""

MAX_AWAITED_VECTORS = 300
"""Vectors that a job awaits at the same time: a second or two of the indexer's work."""

JOB_POLL_INTERVAL_S = 0.1
"""Between two checks of awaited vectors."""

MAX_CONCURRENT_JOBS = 4
"""Concurrent jobs of one worker; further ones wait, users in turn. A user has two of them at most."""

Answer = dict[str, Any] | None
"""The result of a job; None if the partition has left meanwhile."""


class WaitingJob:
    """A job that waits for its turn, for all that ask for the same."""

    def __init__(self, started_at: datetime) -> None:
        """`started_at` is when it was asked for, by the last one that did."""
        self.started_at = started_at
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def fail(self, problem: BaseException) -> None:
        """End all that wait for the answer with the exception of the job."""
        if isinstance(problem, asyncio.CancelledError):
            self.answer.cancel()
        else:
            self.answer.set_exception(problem)
            # Without a second request no one reads it.
            self.answer.exception()


class RunJobs:
    """Handles `job.v1`: checks vectors and requests missing and stale ones, or has another job of its kind run."""

    def __init__(
        self,
        maintain_at: Callable[[int], Maintain],
        compare_at: Callable[[int], CompareEmbedders],
        evaluate_at: Callable[[int], EvaluateRevisions],
        refresh: RunRefreshes,
        files: FileJobs,
        ctx: WorkerContext,
    ) -> None:
        self._maintain_at = maintain_at
        self._compare_at = compare_at
        self._evaluate_at = evaluate_at
        self._refresh = refresh
        self._files = files
        self._ctx = ctx
        self._turns = FairTurns(MAX_CONCURRENT_JOBS, math.inf)
        self._waiting: dict[tuple[int, str], WaitingJob] = {}
        """By partition and job, without what differs in like ones: its id and when it was asked for."""

    async def __call__(self, job: Job, record: Record, _options: ReplyOptions) -> HandlerResult:
        result = await self._run(job, record.partition)
        if result.answer is not None:
            # Before the answer: after a kill the next worker's index has what the job has written.
            await self._ctx.commit.commit([record.partition], is_hurried=True)
            warnings = (*result.answer.warnings, *warn_of_unknown(job.unknown_arguments))
            return replace(result, answer=replace(result.answer, warnings=warnings))
        return result

    async def _run(self, job: Job, partition: int) -> HandlerResult:
        """Run the job; without an answer if the partition has left: its worker gets the job again, and answers it."""
        if job.kind == "refresh":
            return await self._refresh(job, partition)
        answer = await self._in_turn(job, partition)
        if answer is None:
            return HandlerResult(None)
        reply = SuccessReply({**answer, "job_id": job.job_id})
        return HandlerResult(reply, pending_writes=self._record_backfill(job, partition))

    async def _in_turn(self, job: Job, partition: int) -> Answer:
        """Run the job when it is its user's turn, or take the answer of a job like it that waits for its own turn.

        A running job may have passed the memories that a later one is meant for: it is waited for by none.
        """
        alike = partition, job.model_dump_json(exclude={"job_id", "started_at", "unknown_arguments"})
        if (waiting := self._waiting.get(alike)) is not None:
            waiting.started_at = max(waiting.started_at, job.started_at)
            return await asyncio.shield(waiting.answer)
        waiting = self._waiting[alike] = WaitingJob(job.started_at)
        try:
            async with self._turns.turn(job.scope.boundary):
                del self._waiting[alike]
                answer = await self._carry_out(job.model_copy(update={"started_at": waiting.started_at}), partition)
        except BaseException as problem:
            if self._waiting.get(alike) is waiting:
                del self._waiting[alike]
            waiting.fail(problem)
            raise
        waiting.answer.set_result(answer)
        return answer

    async def _carry_out(self, job: Job, partition: int) -> Answer:
        with self._ctx.jobs.running(job) as tally:
            if job.kind == "compare_embedders":
                return await run_comparison(job, tally, self._compare_at(partition), partition, self._ctx)
            if job.kind == "evaluate":
                return await run_evaluation(job, tally, self._evaluate_at(partition), partition, self._ctx)
            if job.kind == "verify":
                return await run_verification(job, tally, self._maintain_at(partition), partition, self._ctx)
            running = JobRun(job, tally, self._maintain_at(partition), partition, self._ctx)
            if not await running.run_to_end():
                return None
            if job.kind == "retry_failed":
                await self._files.retry(job, partition, tally)
            if job.kind == "reconcile":
                await self._files.remove_orphans(job, partition, tally)
            # The answer of a job.
            counted = {name: number for name, number in asdict(tally).items() if name != "job"}
            return {"job_id": tally.job.job_id, **counted}

    def _record_backfill(self, job: Job, partition: int) -> list[Awaitable[None]]:
        if job.kind not in ("backfill", "rebuild"):
            return []
        modes, now = self._maintain_at(partition).modes(job), self._ctx.clock.now()
        return self._ctx.jobs.record_backfill(partition, job.scope.boundary, modes, now)


class JobRun:
    def __init__(self, job: Job, tally: JobProgress, maintain: Maintain, partition: int, ctx: WorkerContext) -> None:
        self._job, self._tally, self._maintain = job, tally, maintain
        self._partition = partition
        self._ctx = ctx
        self._awaited: list[InspectedMemory] = []

    async def run_to_end(self) -> bool:
        """Process all memories; False if the partition has left."""
        ids = self._maintain.affected_ids(self._job)
        self._tally.total = len(ids)
        for page in batches(ids, JOB_PAGE_SIZE):
            inspect = partial(self._maintain.inspect, self._job, page)
            found = await until_available(inspect, "vector index", self._ctx.meters)
            self._tally.skipped += len(page) - len(found)
            for inspected in found:
                await self._begin(inspected)
            await self._settle(MAX_AWAITED_VECTORS)
            if not self._is_assigned():
                return False
        await self._settle(0)
        if self._job.kind == "reconcile":
            await self._remove_orphans()
        return self._is_assigned()

    async def _begin(self, inspected: InspectedMemory) -> None:
        match inspected.due:
            case "skip":
                self._tally.skipped += 1
            case "done":
                self._tally.processed += 1
            case "fail":
                self._tally.failed += 1
            case "await":
                self._awaited.append(inspected)
            case "make":
                await self._publish(self._maintain.reembed_event(inspected))
                self._awaited.append(inspected)

    async def _settle(self, most: int) -> None:
        """Wait until at most `most` vectors are awaited."""
        while True:
            self._awaited = [inspected for inspected in self._awaited if not self._is_settled(inspected)]
            if len(self._awaited) <= most or not self._is_assigned():
                return
            await asyncio.sleep(JOB_POLL_INTERVAL_S)

    def _is_settled(self, inspected: InspectedMemory) -> bool:
        outcome = self._maintain.outcome_of(inspected)
        if outcome is not None:
            setattr(self._tally, outcome, getattr(self._tally, outcome) + 1)
            self._tally.stale_cleared += inspected.is_stale and outcome == "processed"
        return outcome is not None

    async def _remove_orphans(self) -> None:
        async def publish_orphans() -> int:
            found = [event async for event in self._maintain.orphans(self._job)]
            for event in found:
                await self._publish(event)
            return len(found)

        self._tally.orphans = await until_available(publish_orphans, "vector index", self._ctx.meters)

    async def _publish(self, event: BaseModel) -> None:
        out = event_out(self._ctx.topics.embedded, self._job.scope.boundary, event)
        await await_all([await self._ctx.publisher.send(out)])

    def _is_assigned(self) -> bool:
        return self._ctx.is_assigned(self._partition)


async def run_comparison(
    job: Job, tally: JobProgress, agent: CompareEmbedders, partition: int, ctx: WorkerContext
) -> dict[str, Any] | None:
    """Run the job `compare_embedders` turn by turn; new turns are embedded first.

    Progress counts turns. Returns the answer, or None if the partition was reassigned meanwhile: its new worker runs
    the job again.
    """
    samples = [(mode, agent.sample(job, mode)) for mode in agent.modes(job)]
    tally.total = sum(len(sample) for _, sample in samples)
    compared = {}
    for mode, sample in samples:
        vectors: list[VectorPair | None] = []
        try:
            for turn in sample:
                if not ctx.is_assigned(partition):
                    return None
                vectors.append(await until_available(partial(agent.encode, turn, mode), "embedder", ctx.meters))
                tally.processed += 1
        except ModelMissing:
            compared[mode.name] = describe(mode.embedder, sample, "model_missing", None)
        else:
            compared[mode.name] = await agent.conclude(mode, sample, vectors)
    return {"job_id": job.job_id, "compared": compared}
