"""Jobs of the worker for many users: `backfill`, `rebuild`, `reconcile` and `retry` of the command line."""

from dataclasses import dataclass

from modestream_client import MemoryClient
from modestream_client.answers import parse_as
from modestream_client.results.upkeep import FinishedJob

from operations.boundaries import list_boundaries
from operations.deployment import client_of, deployment_at, scope_of
from operations.journal import Journal
from operations.progress import Progress
from operations.run_jobs import JobTotals, report, run_for_each
from operations.selection import Selection, named_scope
from schemas.messages.boundaries import Boundary
from streams.settings import Settings

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
    journal = Journal(settings.data_dir / "run" / f"{options.name}-{_identity(options, settings)}.done")
    async with client_of(settings, options.selection.principal) as memory:

        async def run(boundary: Boundary) -> FinishedJob:
            return await _run(memory, settings, boundary, options)

        with Progress(options.name, len(boundaries), "users") as progress:
            totals = await run_for_each(boundaries, run, journal, progress, options.selection.at_once)
    return report(totals, _summary(options.name, totals))


async def _run(memory: MemoryClient, settings: Settings, boundary: Boundary, options: JobOptions) -> FinishedJob:
    project = options.selection.project
    record = {
        "schema": "command.v1",
        "command": COMMANDS[options.name],
        "scope": await scope_of(memory, settings, boundary, project),
        "arguments": {"mode": options.mode, "all_projects": project is None},
    }
    reply, _ = await memory.request("commands", record, timeout=options.user_timeout_s)
    return parse_as(FinishedJob, reply.result)


def _identity(options: JobOptions, settings: Settings) -> str:
    """Return what tells this run from another one of the same job."""
    selection = options.selection
    return named_scope(settings.topic_prefix, options.mode, selection.project, *sorted(selection.users or ()))


def _summary(name: str, totals: JobTotals) -> str:
    return (
        f"{name}: {totals.users} users{totals.resumed_note}, {len(totals.failures)} users failed; vectors:"
        f" {totals.processed} processed, {totals.skipped} skipped, {totals.failed} failed,"
        f" {totals.stale_cleared} stale cleared, {totals.orphans} orphans removed"
    )
