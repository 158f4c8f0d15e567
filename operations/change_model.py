"""`change-model`: give a mode another embedder, for users of a whole deployment, or drop the former vectors.

Enters: the mode and the embedder. For each user the mode is redeclared, and its vectors are awaited, so the number of
concurrent users bounds the work in progress; questions are answered by the former embedder until a user's vectors are
complete. The same command with the former embedder rolls back. An interrupted run skips the finished users; for the
interrupted one it only awaits the vectors.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from modestream_client import MemoryServiceError
from modestream_client.answers import parse_as
from modestream_client.results import DeclaredModes, FinishedJob, ModeHealth, ServiceHealth, ShownMode

from operations.deployment import (
    Progress,
    Selection,
    client_of,
    deployment_at,
    list_boundaries,
    named_scope,
    run_command,
    scope_of,
)
from operations.jobs import Journal, report, run_for_each
from schemas.messages.published import Boundary
from schemas.state.modes import GENERAL
from streams.settings import Settings

POLL_INTERVAL_S = 0.5
"""Interval between checks of a user's vectors."""

LATER_USERS = (
    "Users that come later have the deployment's own general: to give them {embedder!r} too, set"
    " MODESTREAM_GENERAL_EMBEDDER={embedder} and restart the workers\n"
)
"""Hint printed after `general` has changed for all users."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """The mode and its new embedder, None to drop the former vectors; the time limit of one user."""

    mode: str
    embedder: str | None
    project: str | None = None
    user_timeout_s: float = 3600.0
    poll_interval_s: float = POLL_INTERVAL_S


Call = Callable[[str, dict[str, str], dict[str, Any]], Awaitable[Any]]
"""Sends a command by its name, scope and arguments, and returns its result. Raises MemoryClientError."""


class ChangeModel:
    """Changes the mode of one user at a time, over a client. `unchanged` counts users without a change."""

    def __init__(self, call: Call, change: ModelChange) -> None:
        self._call = call
        self._change = change
        self.unchanged = 0

    async def __call__(self, scope: dict[str, str]) -> FinishedJob:
        """Declare the mode of a user and await its vectors; skip a user without the mode.

        Raises MemoryClientError, also after `user_timeout_s`.
        """
        result = parse_as(DeclaredModes, await self._call("list_modes", scope, {}))
        wanted = (self._change.mode, self._change.project)
        mode = next((mode for mode in result.modes if (mode.name, mode.project) == wanted), None)
        if mode is None:
            return FinishedJob(job_id=self._change.mode, processed=0, skipped=1, failed=0)
        is_changed = await self._apply(mode, scope)
        if not is_changed and _is_complete(await self._health(scope)):
            self.unchanged += 1
        health = await self._complete(scope)
        return FinishedJob(job_id=self._change.mode, processed=health.ready, skipped=0, failed=health.failed)

    async def _apply(self, mode: ShownMode, scope: dict[str, str]) -> bool:
        """Declare the mode if needed; return whether its embedder changed, or its former vectors were dropped."""
        if self._change.embedder is None:
            await self._declare(scope, mode.embedder, keep_former=False)
            return mode.former_embedder is not None
        if mode.embedder == self._change.embedder:
            return False
        # An embedder has several names; the service answers with the stored one.
        return (await self._declare(scope, self._change.embedder)).embedder != mode.embedder

    async def _declare(self, scope: dict[str, str], embedder: str, *, keep_former: bool = True) -> ShownMode:
        arguments = {
            "name": self._change.mode,
            "embedder": embedder,
            "for_project": self._change.project is not None,
            "keep_former": keep_former,
        }
        return parse_as(ShownMode, await self._call("declare_mode", scope, arguments))

    async def _health(self, scope: dict[str, str]) -> ModeHealth:
        return parse_as(ServiceHealth, await self._call("health", scope, {})).modes[self._change.mode]

    async def _complete(self, scope: dict[str, str]) -> ModeHealth:
        """Wait until every vector of the mode is ready or has failed."""
        until = time.monotonic() + self._change.user_timeout_s
        while True:
            health = await self._health(scope)
            if _is_complete(health):
                return health
            if time.monotonic() > until:
                left = f"{health.stale + health.pending} vectors are missing"
                raise MemoryServiceError("timeout", f"{left}; they go on being made: repeat the command to wait")
            await asyncio.sleep(self._change.poll_interval_s)


def _is_complete(health: ModeHealth) -> bool:
    return not (health.stale or health.pending or (health.former or {}).get("serves"))


async def change_model(change: ModelChange, selection: Selection, settings: Settings) -> int:
    """Run it for the selected users, print a summary, and return 0, or 1 if anything failed."""
    settings = await deployment_at(settings)
    boundaries = await list_boundaries(settings, selection.users)
    name = named_scope(
        settings.topic_prefix, change.mode, change.embedder, change.project, *sorted(selection.users or ())
    )
    journal = Journal(settings.data_dir / "run" / f"change-model-{name}.done")
    async with client_of(settings, selection.principal) as memory:

        async def call(command: str, scope: dict[str, str], arguments: dict[str, Any]) -> Any:
            return await run_command(memory, command, scope, arguments, timeout=change.user_timeout_s)

        changed = ChangeModel(call, change)

        async def run(boundary: Boundary) -> FinishedJob:
            return await changed(await scope_of(memory, settings, boundary, change.project))

        with Progress("change-model", len(boundaries), "users") as progress:
            totals = await run_for_each(boundaries, run, journal, progress, selection.at_once)
    had_it = f", {changed.unchanged} with nothing to change" if changed.unchanged else ""
    code = report(
        totals,
        f"change-model: {totals.users - totals.skipped - changed.unchanged} users changed{totals.resumed_note}{had_it},"
        f" {totals.skipped} without the mode, {len(totals.failures)} failed;"
        f" vectors: {totals.processed} ready, {totals.failed} failed",
    )
    if change.embedder is not None and change.mode == GENERAL and change.project is None and selection.users is None:
        sys.stdout.write(LATER_USERS.format(embedder=change.embedder))
    return code
