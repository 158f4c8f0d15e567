"""Scheduled maintenance: the jobs of each user when they are due, one after another, and backups.

A job is written to the topic of jobs, where a kill leaves it to be delivered again; that it has begun is stored first,
in the row of its user. A user's partition is with one worker, and so are its jobs; backups are made by the worker that
has the first partition. A backup runs in a process of its own, and its folder says when it was last made.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from pydantic_core import from_json

from schemas.internal.changes import Job
from schemas.internal.job_history import MAINTENANCE_JOBS, MaintenanceJob, Schedule, StoredJob
from schemas.moments import iso
from schemas.scope_models import some_scope
from streams.flow.background.boundaries import boundaries_of
from streams.flow.publisher import await_all
from streams.flow.requests.events import event_out
from streams.flow.stores.tables import BoundaryCounts
from streams.flow.worker_context import WorkerContext

log = structlog.get_logger()

CHECKS_PER_INTERVAL = 10
"""Checks within the shortest interval: a job is late by a tenth of its interval at most."""

MAX_CHECK_INTERVAL_S = 600.0
"""Maximum seconds between two checks."""

PAGE_SIZE = 200
"""Users between two pauses for the event loop."""

MAX_JOB_WAIT_S = 900.0
"""Maximum wait for a job before the next one begins."""

JOB_POLL_INTERVAL_S = 0.5
"""Between two checks whether a job has ended."""

MANIFEST = "manifest.json"
"""The file of a backup that says when it was made."""

BACKUP_PARTITION = 0


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
        """Look for what is due until cancelled."""
        shortest_s = 3600 * min(self._schedule.values())
        while True:
            await asyncio.sleep(min(MAX_CHECK_INTERVAL_S, shortest_s / CHECKS_PER_INTERVAL))
            try:
                await self.look()
            except Exception:
                # A partition may leave while it is read: the next check covers the rest.
                log.exception("looking for due maintenance failed")

    async def look(self) -> None:
        """Begin what is due, each when the one before has ended."""
        await self._back_up_if_due()
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
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + MAX_JOB_WAIT_S
        while loop.time() < wait_until and self._ctx.is_assigned(partition):
            found = self._ctx.jobs.find(partition, boundary, job.job_id)
            if found is None or found.answer is not None:
                return
            await asyncio.sleep(JOB_POLL_INTERVAL_S)

    async def _back_up_if_due(self) -> None:
        every = self._schedule.get("backup")
        if every is None or self._backup_to is None or BACKUP_PARTITION not in self._ctx.served_partitions():
            return
        last = await asyncio.to_thread(backed_up_at, self._backup_to)
        if last is None or self._ctx.clock.now() - last >= timedelta(hours=every):
            await back_up(self._backup_to)


async def back_up(folder: Path) -> None:
    """Run `modestream backup` in a process of its own. A failed one is logged, and tried again at the next check."""
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
