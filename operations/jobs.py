"""Jobs of the worker for many users: `backfill`, `rebuild`, `reconcile` and `retry` of the command line.

Users are worked on some at a time. Guaranteed: a user that is done is in the journal, and is left out when an
interrupted run is repeated; the journal goes with a run in which all are done. It has one line for each finished user,
appended and synced to the disk; a torn last line, of a process that was killed, is a user that is not done.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from modestream_client import MemoryClient, MemoryClientError
from modestream_client.answers import parse_as
from modestream_client.results import FinishedJob

from operations.deployment import (
    Selection,
    client_of,
    deployment_at,
    list_boundaries,
    named_scope,
    run_command,
    scope_of,
)
from operations.progress import Progress, at_most
from schemas.messages.boundaries import Boundary
from streams.settings import Settings


class Journal:
    """The finished units of one run. Belongs to one process."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier process has finished."""
        self._path = path
        self.done: frozenset[str] = frozenset(_entries(path))

    def finish(self, key: str) -> None:
        """Record that one is done."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # In a line of its own, also behind a torn one.
            file.write(b"\n" + orjson.dumps(key) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Remove the file: the run is whole, and the next one begins anew."""
        self._path.unlink(missing_ok=True)


def _entries(path: Path) -> list[str]:
    if not path.exists():
        return []
    keys: list[str] = []
    for line in path.read_bytes().splitlines():
        try:
            entry = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(entry, str):
            keys.append(entry)
    return keys


RunJob = Callable[[Boundary], Awaitable[FinishedJob]]
"""Runs the job for one user to its end. Raises MemoryClientError."""


@dataclass(slots=True)
class JobTotals:
    """The sum over all users; `failures` has the reason by user."""

    users: int = 0
    resumed: int = 0
    processed: int = 0
    skipped: int = 0
    failed: int = 0
    stale_cleared: int = 0
    orphans: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, finished: FinishedJob) -> None:
        """Add one user's counts."""
        self.users += 1
        for name in ("processed", "skipped", "failed", "stale_cleared", "orphans"):
            setattr(self, name, getattr(self, name) + getattr(finished, name))

    @property
    def is_clean(self) -> bool:
        """True if nothing failed."""
        return not self.failed and not self.failures

    @property
    def resumed_note(self) -> str:
        """The part of a summary that tells of an earlier, interrupted run; empty without one."""
        return f", {self.resumed} done before" if self.resumed else ""


def report(totals: JobTotals, summary: str) -> int:
    """Print why users failed, and the summary; return the exit code, 1 if anything failed."""
    for user, reason in sorted(totals.failures.items()):
        sys.stderr.write(f"{user}: {reason}\n")
    sys.stdout.write(f"{summary}\n")
    return 0 if totals.is_clean else 1


async def run_for_each(
    boundaries: Iterable[Boundary], run: RunJob, journal: Journal, progress: Progress, at_once: int
) -> JobTotals:
    """Run the job for each user that the journal does not have, at most `at_once` at the same time."""
    everyone = list(boundaries)
    due = [boundary for boundary in everyone if boundary.boundary not in journal.done]
    totals = JobTotals(resumed=len(everyone) - len(due))
    progress.advance(totals.resumed)

    async def work(boundary: Boundary) -> None:
        await _run_one(boundary, run, journal, totals)
        progress.advance()

    await at_most(at_once, due, work)
    if totals.is_clean:
        journal.close()
    return totals


async def _run_one(boundary: Boundary, run: RunJob, journal: Journal, totals: JobTotals) -> None:
    try:
        finished = await run(boundary)
    except MemoryClientError as problem:
        totals.failures[boundary.boundary] = str(problem)
        return
    totals.add(finished)
    # A user whose vectors failed stays due: its next run may succeed.
    if not finished.failed:
        journal.finish(boundary.boundary)


COMMANDS = {"backfill": "backfill", "rebuild": "rebuild", "reconcile": "reconcile", "retry": "retry_failed"}
"""Commands of the service by the name on the command line."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What to run, for which users; `user_timeout_s` limits the job of one user."""

    name: str
    selection: Selection
    mode: str | None = None
    user_timeout_s: float = 3600.0


async def run_jobs(options: JobOptions, settings: Settings) -> int:
    """Run the job, print a summary, and return 0, or 1 if anything failed."""
    settings = await deployment_at(settings)
    boundaries = await list_boundaries(settings, options.selection.users)
    selection = options.selection
    # Tells this run from another one of the same job.
    run_name = named_scope(settings.topic_prefix, options.mode, selection.project, *sorted(selection.users or ()))
    journal = Journal(settings.data_dir / "run" / f"{options.name}-{run_name}.done")
    async with client_of(settings, selection.principal) as memory:

        async def run(boundary: Boundary) -> FinishedJob:
            return await _run(memory, settings, boundary, options)

        with Progress(options.name, len(boundaries), "users") as progress:
            totals = await run_for_each(boundaries, run, journal, progress, selection.at_once)
    return report(totals, _summary(options.name, totals))


async def _run(memory: MemoryClient, settings: Settings, boundary: Boundary, options: JobOptions) -> FinishedJob:
    project = options.selection.project
    scope = await scope_of(memory, settings, boundary, project)
    arguments = {"mode": options.mode, "all_projects": project is None}
    result = await run_command(memory, COMMANDS[options.name], scope, arguments, timeout=options.user_timeout_s)
    return parse_as(FinishedJob, result)


def _summary(name: str, totals: JobTotals) -> str:
    return (
        f"{name}: {totals.users} users{totals.resumed_note}, {len(totals.failures)} users failed; vectors:"
        f" {totals.processed} processed, {totals.skipped} skipped, {totals.failed} failed,"
        f" {totals.stale_cleared} stale cleared, {totals.orphans} orphans removed"
    )
