"""The users of a deployment, and its totals: only what the caller may see."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from modestream_client.operations import HEALTH, LIST_PROJECTS

from gateway.service.access import may_read_project, may_see
from gateway.service.boundaries import Boundaries, sum_up
from gateway.service.calls import Call, Caller
from gateway.service.cursors import cursor_of, place_of
from gateway.service.failures import Refused
from gateway.service.granted_users import granted_users
from gateway.service.operations import Operations
from gateway.service.wire import Json
from schemas.scopes import ANY_VALUE
from schemas.version import VERSION

AT_ONCE = 8
"""Questions to the worker at the same time for one list."""

MAX_PROJECTS = 500
"""Projects of a user that are summed up: a page of the worker's list."""

UNKNOWN_STATE: Json = {"lag": None, "language_model": None, "vector_index": None, "usage": None}
"""The state of a deployment that does not answer."""

OF_THE_USER = ("modes", "jobs", "last_jobs", "growth", "telemetry")
"""Parts of `health` that are of the user of the question."""


class Users:
    """Lists boundaries, and sums them up.

    Guaranteed: of a user with projects that the caller may not read, numbers and modes are those of the projects that
    it may; they are asked of the worker, since the topic of boundaries has all projects together.
    """

    def __init__(self, boundaries: Boundaries, operations: Operations, scope_fields: Iterable[str]) -> None:
        """`scope_fields` are those of the deployment's scopes without the boundary's."""
        self._any_project = dict.fromkeys(scope_fields, ANY_VALUE)
        self._boundaries = boundaries
        self._operations = operations

    async def list(self, call: Call, prefix: str, limit: int, cursor: str | None, *, asks_worker: bool = True) -> Json:
        """Return a page of `boundary.v1` in the order of names, whichever user the call is about.

        Without `asks_worker`, users that are seen in part have no numbers. Raises Refused, also for a cursor of
        another list.
        """
        place = place_of(cursor, prefix)
        found = self._found(call.caller, prefix, place)
        page = list(islice(found, limit + 1))
        after = cursor_of(page[limit - 1]["boundary"], prefix) if len(page) > limit else None
        if not asks_worker:
            return {"items": [self._whole(call.caller, one) for one in page[:limit]], "next": after}
        places = asyncio.Semaphore(AT_ONCE)

        async def shown(boundary: Json) -> Json:
            async with places:
                return await self._shown(
                    replace(call, user_id=self._boundaries.fields.name(boundary["scope"])), boundary
                )

        return {"items": await asyncio.gather(*map(shown, page[:limit])), "next": after}

    def only_user(self, caller: Caller) -> str | None:
        """Return the user that the caller may see, if it is a single one; None otherwise."""
        seen = [self._boundaries.fields.name(one["scope"]) for one in islice(self._found(caller, "", None), 2)]
        return seen[0] if len(seen) == 1 else None

    async def boundary(self, call: Call) -> Json | None:
        """Return the `boundary.v1` of the call's user; None if the caller may see none. Raises Refused."""
        boundary = self._boundaries.user(call.user_id) if may_see(call.caller, call.user_id) else None
        return None if boundary is None else await self._shown(call, boundary)

    def totals(self, caller: Caller) -> Json:
        """Return totals over the users that the caller may see; one that it sees in part counts as a boundary only."""
        named = granted_users(caller, self._boundaries)
        if named is None:
            return self._boundaries.totals()
        return sum_up([self._whole(caller, one) for one in map(self._boundaries.user, named) if one is not None])

    def first_days(self, caller: Caller) -> Mapping[str, int]:
        """Return how many of the users whose projects the caller may all read have their first memory on each day."""
        named = granted_users(caller, self._boundaries)
        if named is None:
            return self._boundaries.first_days()
        found = (self._whole(caller, one) for one in map(self._boundaries.user, named) if one is not None)
        return Counter(str(one["first"])[:10] for one in found if one.get("first"))

    def _found(self, caller: Caller, prefix: str, place: str | None) -> Iterator[Json]:
        """Yield the boundaries that the caller may see behind a place, with the numbers of all their projects."""
        named = granted_users(caller, self._boundaries)
        if named is None:
            return self._boundaries.after(prefix, place)
        seen = sorted(filter(None, map(self._boundaries.user, named)), key=lambda one: str(one["boundary"]))
        matching = (one for one in seen if self._boundaries.fields.name(one["scope"]).startswith(prefix))
        return (one for one in matching if place is None or one["boundary"] > place)

    def _whole(self, caller: Caller, boundary: Json) -> Json:
        """Return a boundary if the caller may read all of its projects, else one without numbers."""
        user = self._boundaries.fields.name(boundary["scope"])
        return boundary if may_read_project(caller, user, None) else _summed(boundary, [])

    async def _shown(self, call: Call, boundary: Json) -> Json:
        if may_read_project(call.caller, call.user_id, None):
            return boundary
        listed = await self._operations.run(LIST_PROJECTS, call, self._any_project, {"limit": MAX_PROJECTS})
        return _summed(boundary, listed["items"])

    @property
    def version(self) -> int:
        """Grows with every change of a user's numbers."""
        return self._boundaries.version

    async def changed_since(self, version: int) -> None:
        """Return once the version is another one."""
        await self._boundaries.changed_since(version)

    async def deployment(self, call: Call) -> Json:
        """Return totals over the users that the caller may see, and the state of the deployment.

        A service that does not answer shows in `health` as null: the totals are known all the same.
        """
        return {**self.totals(call.caller), **await self._state(call), "versions": _versions()}

    async def _state(self, call: Call) -> Json:
        try:
            health = await self._operations.run(HEALTH, call, {})
        except Refused:
            return UNKNOWN_STATE
        shown = {name: value for name, value in health.items() if name not in OF_THE_USER}
        return UNKNOWN_STATE | shown | {"usage": (health.get("telemetry") or {}).get("worker")}


def _summed(boundary: Json, projects: Sequence[Json]) -> Json:
    """Return a boundary with the numbers of some of its projects. The states of vectors are not known by project."""
    modes: Counter[str] = Counter()
    for project in projects:
        modes.update(project["modes"])
    embedders = {name: mode.get("embedder") for name, mode in boundary["modes"].items()}
    return {
        "schema": boundary["schema"],
        "boundary": boundary["boundary"],
        "scope": boundary["scope"],
        "projects": len(projects),
        "conversations": sum(one["conversations"] for one in projects),
        "memories": sum(one["memories"] for one in projects),
        "modes": {name: {"memories": modes[name], "embedder": embedders.get(name)} for name in sorted(modes)},
        "embedding": {},
        "first": min((one["first"] for one in projects), default=None),
        "last": max((one["last"] for one in projects), default=None),
    }


def _versions() -> Json:
    return {"gateway": VERSION, "client": _version("modestream-client")}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
