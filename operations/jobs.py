"""Jobs and health of many users: `backfill`, `rebuild`, `reconcile`, `retry` and `health` of the command line.

Users are processed a few at a time. Guaranteed: a finished user is in the journal, and is skipped when an interrupted
run is repeated; a complete run removes the journal. It has one line for each finished user, appended and synced to the
disk; a torn last line, of a killed process, counts as unfinished.
"""

import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from modestream_client import MemoryClientError
from modestream_client.answers import parse_as
from modestream_client.results import FinishedJob, ServiceHealth

from operations.deployment import (
    Progress,
    Selection,
    at_most,
    client_of,
    deployment_at,
    list_boundaries,
    named_scope,
    run_command,
    scope_of,
)
from schemas.messages.published import Boundary
from streams.settings import Settings


class Journal:
    """Journal of the finished units of one run. Belongs to one process."""

    def __init__(self, path: Path) -> None:
        """Read the units finished by an earlier process."""
        self._path = path
        keys: set[str] = set()
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with suppress(ValueError):
                if isinstance(entry := orjson.loads(line), str):
                    keys.add(entry)
        self.done: frozenset[str] = frozenset(keys)

    def finish(self, key: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            # A separate line, also behind a torn one.
            file.write(b"\n" + orjson.dumps(key) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Remove the file: the run is complete, and the next one starts over."""
        self._path.unlink(missing_ok=True)


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
        self.users += 1
        for name in ("processed", "skipped", "failed", "stale_cleared", "orphans"):
            setattr(self, name, getattr(self, name) + getattr(finished, name))

    @property
    def is_clean(self) -> bool:
        return not self.failed and not self.failures

    @property
    def resumed_note(self) -> str:
        """Return the summary's note of an earlier, interrupted run; empty without one."""
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
        try:
            finished = await run(boundary)
        except MemoryClientError as problem:
            totals.failures[boundary.boundary] = str(problem)
        else:
            totals.add(finished)
            # A user with failed vectors stays due: its next run may succeed.
            if not finished.failed:
                journal.finish(boundary.boundary)
        progress.advance()

    await at_most(at_once, due, work)
    if totals.is_clean:
        journal.close()
    return totals


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
    # Distinguishes this run from others of the same job.
    run_name = named_scope(settings.topic_prefix, options.mode, selection.project, *sorted(selection.users or ()))
    journal = Journal(settings.data_dir / "run" / f"{options.name}-{run_name}.done")
    async with client_of(settings, selection.principal) as memory:

        async def run(boundary: Boundary) -> FinishedJob:
            scope = await scope_of(memory, settings, boundary, selection.project)
            arguments = {"mode": options.mode, "all_projects": selection.project is None}
            result = await run_command(memory, COMMANDS[options.name], scope, arguments, timeout=options.user_timeout_s)
            return parse_as(FinishedJob, result)

        with Progress(options.name, len(boundaries), "users") as progress:
            totals = await run_for_each(boundaries, run, journal, progress, selection.at_once)
    return report(
        totals,
        f"{options.name}: {totals.users} users{totals.resumed_note}, {len(totals.failures)} users failed; vectors:"
        f" {totals.processed} processed, {totals.skipped} skipped, {totals.failed} failed,"
        f" {totals.stale_cleared} stale cleared, {totals.orphans} orphans removed",
    )


COUNTED = ("eligible", "ready", "pending", "stale", "failed")

MAX_NAMED_USERS = 20
"""Users printed by name, those with the most unready vectors."""


@dataclass(slots=True)
class HealthTotals:
    """Counts over all users, and of each user with unready vectors; `deployment` is the last answer."""

    counts: Counter[str] = field(default_factory=Counter)
    behind: dict[str, Counter[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    deployment: dict[str, Any] = field(default_factory=dict)

    def add(self, user: str, health: ServiceHealth, mode: str | None) -> None:
        own: Counter[str] = Counter()
        for name, counted in health.modes.items():
            if mode in (None, name):
                own.update({count: getattr(counted, count) for count in COUNTED})
        self.counts += own
        if own["eligible"] > own["ready"]:
            self.behind[user] = own
        self.deployment = {"lag": health.lag, "vector_index": health.vector_index, **(health.model_extra or {})}

    @property
    def is_well(self) -> bool:
        """True if every user has answered, no vector has failed, and the vector index answers."""
        index = str(self.deployment.get("vector_index") or "ok")
        return not self.failures and not self.counts["failed"] and not index.startswith("unavailable")


async def show_health(selection: Selection, mode: str | None, settings: Settings) -> int:
    """Ask for every user, print the sums, and return 0 if all is well, else 1."""
    settings = await deployment_at(settings)
    boundaries = await list_boundaries(settings, selection.users)
    totals = HealthTotals()
    async with client_of(settings, selection.principal) as memory:
        with Progress("health", len(boundaries), "users") as progress:

            async def work(boundary: Boundary) -> None:
                try:
                    scope = await scope_of(memory, settings, boundary, selection.project)
                    health = await run_command(memory, "health", scope)
                    totals.add(boundary.boundary, parse_as(ServiceHealth, health), mode)
                except MemoryClientError as problem:
                    totals.failures[boundary.boundary] = str(problem)
                progress.advance()

            await at_most(selection.at_once, boundaries, work)
    _print(totals, len(boundaries))
    return 0 if totals.is_well else 1


def _print(totals: HealthTotals, users: int) -> None:
    write = sys.stdout.write
    write(f"users: {users}, without an answer: {len(totals.failures)}\n")
    write("vectors: " + ", ".join(f"{totals.counts[name]} {name}" for name in COUNTED) + "\n")
    for name in ("lag", "vector_index"):
        write(f"{name}: {totals.deployment.get(name)}\n")
    worst = sorted(totals.behind.items(), key=lambda item: item[1]["ready"] - item[1]["eligible"])[:MAX_NAMED_USERS]
    for user, counts in worst:
        write(f"  {user}: " + ", ".join(f"{counts[name]} {name}" for name in COUNTED) + "\n")
    for user, reason in sorted(totals.failures.items())[:MAX_NAMED_USERS]:
        sys.stderr.write(f"{user}: {reason}\n")
