"""The users of a deployment, and its totals: only as far as the caller may see."""

import asyncio
import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice, product, takewhile

import orjson
from modestream_client.boundary import boundary_key
from modestream_client.operations import HEALTH, LIST_PROJECTS

from gateway.service.access import may_read_project, may_see
from gateway.service.boundaries import Boundaries, sum_up
from gateway.service.calls import Call, Caller, Json, Refused
from gateway.service.operations import Operations
from schemas.scopes import ANY_VALUE
from schemas.version import VERSION

AT_ONCE = 8
"""Concurrent requests to the worker for one list."""

MAX_PROJECTS = 500
"""Projects of a user that are summed up: a page of the worker's list."""

UNKNOWN_STATE: Json = {"lag": None, "language_model": None, "vector_index": None, "usage": None}
"""The state of a deployment that does not answer."""

OF_THE_USER = ("modes", "jobs", "last_jobs", "growth", "telemetry")
"""Parts of `health` about the request's user."""


class Users:
    """Lists boundaries, and sums them up.

    Guaranteed: if the caller may not read all projects of a user, numbers and modes are those of the readable ones;
    they are requested from the worker, since the topic of boundaries has all projects together.
    """

    def __init__(self, boundaries: Boundaries, operations: Operations, scope_fields: Iterable[str]) -> None:
        """`scope_fields` are those of the deployment's scopes without the boundary's."""
        self._any_project = dict.fromkeys(scope_fields, ANY_VALUE)
        self.boundaries = boundaries
        self._operations = operations

    async def list(self, call: Call, prefix: str, limit: int, cursor: str | None, *, asks_worker: bool = True) -> Json:
        """Return a page of `boundary.v1` in the order of names, whichever user the call is about.

        Without `asks_worker`, partly visible users have no numbers. Raises Refused, also for a cursor of another list.
        """
        seen = self._seen(call.caller, prefix, after=position_of(cursor, prefix))
        page = list(islice(seen, limit + 1))
        after = cursor_of(page[limit - 1]["boundary"], prefix) if len(page) > limit else None
        if not asks_worker:
            return {"items": [self._whole(call.caller, boundary) for boundary in page[:limit]], "next": after}
        slots = asyncio.Semaphore(AT_ONCE)

        async def shown(boundary: Json) -> Json:
            async with slots:
                user = self.boundaries.fields.name(boundary["scope"])
                return await self._shown(replace(call, user_id=user), boundary)

        return {"items": await asyncio.gather(*map(shown, page[:limit])), "next": after}

    def only_user(self, caller: Caller) -> str | None:
        """Return the user that the caller may see, if it is a single one; None otherwise."""
        seen = list(islice(self._seen(caller, "", after=None), 2))
        return self.boundaries.fields.name(seen[0]["scope"]) if len(seen) == 1 else None

    async def boundary(self, call: Call) -> Json | None:
        """Return the `boundary.v1` of the call's user; None if the caller may see none. Raises Refused."""
        boundary = self.boundaries.user(call.user_id) if may_see(call.caller, call.user_id) else None
        return None if boundary is None else await self._shown(call, boundary)

    def totals(self, caller: Caller) -> Json:
        """Return totals over the users that the caller may see; a partly visible one counts only as a boundary."""
        named = granted_users(caller, self.boundaries)
        if named is None:
            return self.boundaries.totals()
        boundaries = map(self.boundaries.user, named)
        return sum_up([self._whole(caller, boundary) for boundary in boundaries if boundary is not None])

    def _seen(self, caller: Caller, prefix: str, after: str | None) -> Iterator[Json]:
        """Yield the boundaries that the caller may see after one, with the numbers of all their projects."""
        named = granted_users(caller, self.boundaries)
        if named is None:
            return self.boundaries.after(prefix, after)
        seen = sorted(filter(None, map(self.boundaries.user, named)), key=lambda boundary: str(boundary["boundary"]))
        matching = (boundary for boundary in seen if self.boundaries.fields.name(boundary["scope"]).startswith(prefix))
        return (boundary for boundary in matching if after is None or boundary["boundary"] > after)

    def _whole(self, caller: Caller, boundary: Json) -> Json:
        """Return a boundary if the caller may read all of its projects, else one without numbers."""
        user = self.boundaries.fields.name(boundary["scope"])
        return boundary if may_read_project(caller, user, None) else _summed(boundary, [])

    async def _shown(self, call: Call, boundary: Json) -> Json:
        if may_read_project(call.caller, call.user_id, None):
            return boundary
        listed = await self._operations.run(LIST_PROJECTS, call, self._any_project, {"limit": MAX_PROJECTS})
        return _summed(boundary, listed["items"])

    async def deployment(self, call: Call) -> Json:
        """Return totals over the users that the caller may see, and the state of the deployment.

        Without an answer of the service its state is null: the totals come from the gateway.
        """
        try:
            health = await self._operations.run(HEALTH, call, {})
            shown = {name: value for name, value in health.items() if name not in OF_THE_USER}
            state = UNKNOWN_STATE | shown | {"usage": (health.get("telemetry") or {}).get("worker")}
        except Refused:
            state = UNKNOWN_STATE
        try:
            client = version("modestream-client")
        except PackageNotFoundError:
            client = None
        return {**self.totals(call.caller), **state, "versions": {"gateway": VERSION, "client": client}}


def _summed(boundary: Json, projects: Sequence[Json]) -> Json:
    """Return a boundary with the numbers of some of its projects, without states of vectors."""
    modes: Counter[str] = Counter()
    for project in projects:
        modes.update(project["modes"])
    embedders = {name: mode.get("embedder") for name, mode in boundary["modes"].items()}
    return {
        "schema": boundary["schema"],
        "boundary": boundary["boundary"],
        "scope": boundary["scope"],
        "projects": len(projects),
        "conversations": sum(project["conversations"] for project in projects),
        "memories": sum(project["memories"] for project in projects),
        "modes": {name: {"memories": modes[name], "embedder": embedders.get(name)} for name in sorted(modes)},
        "embedding": {},
        "first": min((project["first"] for project in projects), default=None),
        "last": max((project["last"] for project in projects), default=None),
    }


def granted_users(caller: Caller, boundaries: Boundaries) -> list[str] | None:
    """Return the names of the users that the caller may see, including missing ones; None for all."""
    if caller.own_user is not None:
        return [caller.own_user] if may_see(caller, caller.own_user) else []
    if caller.grants is None:
        return None
    readable = [grant for grant in caller.grants if "read" in grant.may]
    if any(grant.covers_every_user() for grant in readable):
        return None
    users: set[str] = set()
    for grant in readable:
        fields = grant.boundary_fields
        values = [getattr(grant, field) for field in fields]
        combinations = list(product(*takewhile(lambda value: value is not None, values)))
        if None not in values:
            users |= {fields.name(dict(zip(fields, combination, strict=True))) for combination in combinations}
            continue
        # A name of only some fields means the existing users. This needs several fields: the name is the key then.
        prefixes = ["".join(f"{boundary_key([value])}/" for value in combination) for combination in combinations]
        users |= set(filter(grant.covers_user, chain.from_iterable(map(boundaries.keys, prefixes))))
    return sorted(users)


def cursor_of(position: str, *filters: str) -> str:
    """Return the opaque cursor of the page behind `position`, of a list with these filters."""
    text = json.dumps([position, _digest(filters)], ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position_of(cursor: str | None, *filters: str) -> str | None:
    """Return the position of a cursor. Raises Refused, `invalid_value`, for a text of another origin or list.

    >>> position_of(cursor_of("u1", "prefix"), "prefix")
    'u1'
    """
    if cursor is None:
        return None
    try:
        position, digest = orjson.loads(
            base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        )
    except (ValueError, TypeError):
        position, digest = None, None
    if not isinstance(position, str) or digest != _digest(filters):
        raise Refused("invalid_value", "not a cursor of this list: take `next` of its last page", "cursor")
    return position


def _digest(filters: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(filters).encode()).hexdigest()[:12]
