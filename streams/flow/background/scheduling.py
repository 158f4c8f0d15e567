"""Schedule consolidations, jobs of maintenance and backups: each when it is due, one after another.

Consolidations: one scope after another, if it has new turns. Only triggers are written, as a client may; the last run
is read from the history that runs store themselves.

Jobs: those of each user. A job is written to the topic of jobs, where a kill leaves it to be delivered again; that it
has begun is stored first, in the row of its user. A user's partition is with one worker, and so are its jobs; backups
are made by the worker that has the first partition. A backup runs in a process of its own, and its folder says when it
was last made.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import structlog
from pydantic_core import from_json

from agents.rules.access.grants import PRINCIPAL_HEADER
from agents.rules.consolidation.distillation import ScopeTurns, is_consolidation_due
from schemas.internal.changes import Job
from schemas.internal.job_history import MAINTENANCE_JOBS, MaintenanceJob, Schedule, StoredJob
from schemas.messages.records import Outgoing
from schemas.moments import iso
from schemas.scope_models import some_scope
from schemas.state.policies import OPERATOR
from streams.flow.background.boundaries import boundaries_of
from streams.flow.publisher import await_all
from streams.flow.requests.channel import event_out
from streams.flow.stores import BoundaryCounts
from streams.flow.worker_context import WorkerContext
from streams.wire.partitioning import partition_of

log = structlog.get_logger()

CHECKS_PER_INTERVAL = 10
"""Checks within the shortest interval, so that due work is late by at most a tenth of it."""

MAX_CHECK_INTERVAL_S = 600.0
"""Maximum seconds between two checks for jobs and backups."""

MAX_WAIT_S = 900.0
"""Maximum wait for a run or a job before the next one begins."""

POLL_INTERVAL_S = 0.5
"""Between two checks whether a run or a job has ended."""

AS_OPERATOR = ((PRINCIPAL_HEADER, OPERATOR.encode()),)

YIELD_EVERY = 200
"""Records between two pauses for the event loop."""

PAGE_SIZE = 200
"""Users between two pauses for the event loop."""

MANIFEST = "manifest.json"
"""The file of a backup that says when it was made."""

BACKUP_PARTITION = 0


async def _repeat(look: Callable[[], Awaitable[None]], interval_s: float) -> None:
    """Check for due work until cancelled."""
    while True:
        await asyncio.sleep(interval_s)
        try:
            await look()
        except Exception:
            # Partitions may leave while they are read: the next check covers the rest.
            log.exception("looking for what is due failed")


async def _wait(has_ended: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    wait_until = loop.time() + MAX_WAIT_S
    while loop.time() < wait_until and not has_ended():  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(POLL_INTERVAL_S)


class ConsolidationScheduler:
    """Triggers the consolidation of every scope that is due."""

    def __init__(self, every: timedelta, ctx: WorkerContext) -> None:
        self._every = every
        self._ctx = ctx

    async def run(self) -> None:
        await _repeat(self.look, self._every.total_seconds() / CHECKS_PER_INTERVAL)

    async def look(self) -> None:
        """Trigger due scopes, each when the previous run is over."""
        scopes: defaultdict[tuple[tuple[str, str], ...], ScopeTurns] = defaultdict(ScopeTurns)
        for number, memory in enumerate(self._ctx.stores.memories.all()):
            if memory.origin == "said" and memory.superseded_by is None:
                scopes[tuple(sorted(memory.scope.items()))].add(memory)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for turns in list(scopes.values()):
            partition = partition_of(turns.boundary.encode(), self._ctx.partitions)
            runs = self._ctx.consolidations.get(partition, turns.scope)
            if is_consolidation_due(turns, runs, self._ctx.clock.now(), self._every):
                value = orjson.dumps({"schema": "consolidate.v1", "scope": dict(turns.scope), "mode": None})
                out = Outgoing(self._ctx.topics.consolidate, turns.boundary.encode(), value, AS_OPERATOR)
                await (await self._ctx.publisher.send(out))
                await _wait(partial(self._is_over, partition, turns))

    def _is_over(self, partition: int, turns: ScopeTurns) -> bool:
        runs = self._ctx.consolidations.get(partition, turns.scope).runs
        begun = bool(runs) and runs[-1].until > turns.newest
        return begun and not self._ctx.jobs.under_way(turns.boundary)


class MaintenanceScheduler:
    """Begins jobs and backups that are due. Runs until cancelled."""

    def __init__(self, schedule: Schedule, backup_to: Path | None, counts: BoundaryCounts, ctx: WorkerContext) -> None:
        self._schedule = schedule
        self._backup_to = backup_to
        self._counts = counts
        self._ctx = ctx
        self._sent: set[str] = set()
        """Ids of jobs that this process has written: others that have not ended may be lost, and are written again."""

    async def run(self) -> None:
        shortest_s = 3600 * min(self._schedule.values())
        await _repeat(self.look, min(MAX_CHECK_INTERVAL_S, shortest_s / CHECKS_PER_INTERVAL))

    async def look(self) -> None:
        """Start due work, one piece after the other."""
        every, folder = self._schedule.get("backup"), self._backup_to
        if every is not None and folder is not None and BACKUP_PARTITION in self._ctx.served_partitions():
            backed_up = await asyncio.to_thread(backed_up_at, folder)
            if backed_up is None or self._ctx.clock.now() - backed_up >= timedelta(hours=every):
                await back_up(folder)
        for partition in self._ctx.served_partitions():
            last = -1
            while page := await asyncio.to_thread(self._counts.names, partition, last, PAGE_SIZE):
                last = page[-1][0]
                for boundary in sorted(boundaries_of(name for _, name in page)):
                    for job in self._due(partition, boundary):
                        await self._carry_out(partition, job)

    def _due(self, partition: int, boundary: str) -> Iterator[Job]:
        """Yield the jobs of a user that are due, or were begun by a process that may not have written them."""
        begun = self._ctx.jobs.scheduled(partition, boundary)
        for kind in MAINTENANCE_JOBS:
            if kind not in self._schedule:
                continue
            before, now = begun.get(kind), self._ctx.clock.now()
            if before is not None and before.answer is None and before.job_id not in self._sent:
                yield self._job(kind, boundary, partition, before.at)
            elif before is None or now - before.at >= timedelta(hours=self._schedule[kind]):
                yield self._job(kind, boundary, partition, now)

    def _job(self, kind: MaintenanceJob, boundary: str, partition: int, at: datetime) -> Job:
        scope_model = self._ctx.scope_model
        values = some_scope(scope_model) | scope_model.boundary_fields.values_of_key(boundary)
        # Not the id of a request by its offset: no log has as many records.
        job_id = f"{kind}-{partition}-{round(at.timestamp() * 1000)}"
        return Job(scope=scope_model(**values), job_id=job_id, kind=kind, started_at=at)

    async def _carry_out(self, partition: int, job: Job) -> None:
        boundary, at_ms = job.scope.boundary, round(job.started_at.timestamp() * 1000)
        stored = StoredJob(job_id=job.job_id, project=None, at_ms=at_ms)
        await await_all(self._ctx.jobs.begin_scheduled(partition, boundary, job.kind, stored))
        await (await self._ctx.publisher.send(event_out(self._ctx.topics.jobs, boundary, job)))
        self._sent.add(job.job_id)

        def has_ended() -> bool:
            if not self._ctx.is_assigned(partition):
                return True
            found = self._ctx.jobs.find(partition, boundary, job.job_id)
            return found is None or found.answer is not None

        await _wait(has_ended)


async def back_up(folder: Path) -> None:
    """Run `modestream backup` in a separate process. A failure is logged and retried at the next check."""
    command = (sys.executable, "-m", "streams", "backup", "--to", str(folder))
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        said, problems = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    if process.returncode:
        log.error("the scheduled backup failed", code=process.returncode, said=_last_line(problems))
    else:
        log.info("backed up", said=_last_line(said))


def backed_up_at(folder: Path) -> datetime | None:
    """Return when the backup in a folder was last complete; None if it never was, or the folder can't be read."""
    try:
        return datetime.fromisoformat(from_json((folder / MANIFEST).read_bytes())["taken_at"])
    except (OSError, ValueError, KeyError):
        return None


def backup_status(schedule: Schedule, folder: Path | None) -> Mapping[str, Any]:
    """Return the part of `health` about backups."""
    if folder is None or "backup" not in schedule:
        return {}
    last = backed_up_at(folder)
    return {"backup": {"every_hours": schedule["backup"], "last": last and iso(last)}}


def _last_line(output: bytes) -> str:
    return output.decode(errors="replace").strip().rpartition("\n")[2]
