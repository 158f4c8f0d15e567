"""The users of a deployment, and its totals: only what the caller may see."""

from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from gateway.service.access import may_see
from gateway.service.boundaries import Boundaries, sum_up
from gateway.service.calls import Call, Caller
from gateway.service.cursors import cursor_of, place_of
from gateway.service.failures import Refused
from gateway.service.granted_users import granted_users
from gateway.service.layers import Layers
from gateway.service.wire import Json

UNKNOWN_STATE: Json = {"lag": None, "language_model": None, "vector_index": None, "usage": None}
"""The state of a deployment that does not answer."""

OF_THE_USER = ("modes", "jobs", "last_jobs", "growth", "telemetry")
"""Parts of `health` that are of the user of the question."""


class Users:
    """Lists boundaries, and sums them up."""

    def __init__(self, boundaries: Boundaries, layers: Layers) -> None:
        self._boundaries = boundaries
        self._layers = layers

    def list(self, caller: Caller, prefix: str, limit: int, cursor: str | None) -> Json:
        """Return a page of `boundary.v1` in the order of names. Raises Refused for a cursor of another list."""
        place = place_of(cursor, prefix)
        named = granted_users(caller, self._boundaries)
        if named is None:
            found = self._boundaries.after(prefix, place)
        else:
            shown = sorted(filter(None, map(self._boundaries.user, named)), key=lambda one: str(one["boundary"]))
            matching = (one for one in shown if self._boundaries.fields.name(one["scope"]).startswith(prefix))
            found = (one for one in matching if place is None or one["boundary"] > place)
        page = list(islice(found, limit + 1))
        after = cursor_of(page[limit - 1]["boundary"], prefix) if len(page) > limit else None
        return {"items": page[:limit], "next": after}

    def boundary(self, caller: Caller, user_id: str) -> Json | None:
        """Return the `boundary.v1` of one user; None where there is none that the caller may see."""
        return self._boundaries.user(user_id) if may_see(caller, user_id) else None

    def totals(self, caller: Caller) -> Json:
        """Return totals over the users that the caller may see."""
        named = granted_users(caller, self._boundaries)
        if named is None:
            return self._boundaries.totals()
        return sum_up([one for one in map(self._boundaries.user, named) if one is not None])

    def first_days(self, caller: Caller) -> Mapping[str, int]:
        """Return how many of the users that the caller may see have their first memory on each day."""
        named = granted_users(caller, self._boundaries)
        if named is None:
            return self._boundaries.first_days()
        found = (self._boundaries.user(user) for user in named)
        return Counter(str(one["first"])[:10] for one in found if one is not None and one.get("first"))

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
            health = await self._layers.health(call, {})
        except Refused:
            return UNKNOWN_STATE
        shown = {name: value for name, value in health.items() if name not in OF_THE_USER}
        return UNKNOWN_STATE | shown | {"usage": (health.get("telemetry") or {}).get("worker")}


def _versions() -> Json:
    return {"client": _version("modestream-client")}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
