"""The last consolidations of each user, in memory, from the service's events: the changes of each run.

Enters: records of `consolidated`. Guaranteed: bounded; no text of a memory, so that none outlives a forgotten memory.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic_core import from_json

from gateway.service.access import PROJECT, may_read_project
from gateway.service.calls import Call, Json

TOPIC = "consolidated"

MAX_BOUNDARIES = 1_000
"""Users with runs in memory, those of the latest runs."""

MAX_RUNS = 20

MAX_CHANGES = 200
"""Changes of a run in memory, about 30 KB; `changes` counts all."""

NUMERIC = frozenset({"decay"})
"""Operations with numbers as values before and after; those of others may be texts."""


class Change(NamedTuple):
    """One change of a run: to a memory, or to a category or an entry by its name."""

    op: str
    memory_id: str | None
    name: str | None
    before: str | None
    after: str | None


class Run(NamedTuple):
    """Result of a consolidation, with its counts by mode."""

    run: str
    project_id: str | None
    at: str
    created: int
    superseded: int
    modes: Json
    changes: int
    diff: tuple[Change, ...]


class Runs:
    """Runs by user, listed for callers that may see them."""

    def __init__(self, begin: Callable[[], Awaitable[None]], fields: BoundaryFields = USER_BOUNDARY) -> None:
        """`begin` starts the follower of the topic, and returns once it has read the existing records.

        `fields` are the boundary fields of the deployment's scopes.
        """
        self._fields = fields
        self._begin = begin
        self._runs: OrderedDict[str, deque[Run]] = OrderedDict()

    def apply(self, value: bytes | None) -> None:
        """Take one record; others than results of a run are ignored."""
        try:
            record = from_json(value or b"")
            if record["schema"] == "consolidated.v1":
                self._add(self._fields.name(record["scope"]), _run_of(record))
        except (ValueError, KeyError, TypeError):
            return

    def forget(self, key: bytes) -> None:
        """Drop the runs of a forgotten boundary, by its canonical string."""
        for user_id in [user for user in self._runs if self._fields.key_of(user).encode() == key]:
            del self._runs[user_id]

    async def list(self, call: Call, project: str | None) -> list[Run]:
        """Return the runs of a user, newest first, in one project or all that the caller may read. Raises Refused."""
        await self._begin()
        newest = reversed(self._runs.get(call.user_id, ()))
        return [
            run
            for run in newest
            if project in (None, run.project_id) and may_read_project(call.caller, call.user_id, run.project_id)
        ]

    def _add(self, user_id: str, run: Run) -> None:
        runs = self._runs.setdefault(user_id, deque(maxlen=MAX_RUNS))
        if all(earlier.run != run.run for earlier in runs):
            runs.append(run)
        self._runs.move_to_end(user_id)
        while len(self._runs) > MAX_BOUNDARIES:
            self._runs.popitem(last=False)


def _run_of(record: Json) -> Run:
    changes = []
    for change in record["diff"][:MAX_CHANGES]:
        # Values of other operations may be texts, which must not outlive a forgotten memory here.
        values = (change.get("before"), change.get("after")) if change["op"] in NUMERIC else (None, None)
        changes.append(Change(change["op"], change.get("memory_id"), change.get("name"), *values))
    return Run(
        run=record["run"],
        project_id=record["scope"].get(PROJECT),
        at=record["at"],
        created=len(record["created"]),
        superseded=len(record["superseded"]),
        modes=record["modes"],
        changes=len(record["diff"]),
        diff=tuple(changes),
    )
