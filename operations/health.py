"""The command `health` of the command line: the state of vectors of many users, summed up."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from modestream_client import MemoryClient, MemoryClientError
from modestream_client.answers import parse_as
from modestream_client.results import ServiceHealth

from operations.deployment import Selection, client_of, deployment_at, list_boundaries, run_command, scope_of
from operations.progress import Progress, at_most
from schemas.messages.boundaries import Boundary
from streams.settings import Settings

COUNTED = ("eligible", "ready", "pending", "stale", "failed")
"""The counts of a mode."""

MAX_NAMED_USERS = 20
"""Users that are printed by name, those with the most vectors that are not ready."""


@dataclass(slots=True)
class HealthTotals:
    """Counts over all users, and of each user that has vectors which are not ready; `deployment` is the last answer."""

    counts: Counter[str] = field(default_factory=Counter)
    behind: dict[str, Counter[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    deployment: dict[str, Any] = field(default_factory=dict)

    def add(self, user: str, health: ServiceHealth, mode: str | None) -> None:
        """Add the health of one user, in one mode or all."""
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
                await _ask(memory, settings, boundary, (selection.project, mode), totals)
                progress.advance()

            await at_most(selection.at_once, boundaries, work)
    _print(totals, len(boundaries))
    return 0 if totals.is_well else 1


async def _ask(
    memory: MemoryClient,
    settings: Settings,
    boundary: Boundary,
    only: tuple[str | None, str | None],
    totals: HealthTotals,
) -> None:
    project, mode = only
    try:
        scope = await scope_of(memory, settings, boundary, project)
        health = await run_command(memory, "health", scope)
        totals.add(boundary.boundary, parse_as(ServiceHealth, health), mode)
    except MemoryClientError as problem:
        totals.failures[boundary.boundary] = str(problem)


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
