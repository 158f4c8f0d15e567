"""Counts of each user, in memory, from the topic of boundaries; totals over all users.

Enters: the records of that topic, tombstones included. Guaranteed: bounded memory; totals are kept up to date.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields, boundary_key
from pydantic_core import from_json

from gateway.service.calls import Json

MAX_BOUNDARIES = 200_000
"""Boundaries in memory; more are counted as `not_listed`, up to as many, and any Kafka tool can read them."""

MAX_BYTES = 128 * 1024 * 1024
"""Bytes of their records together: 0.4 KB for a user with one mode, 17 KB for one with 256."""

LAST = "\U0010ffff"
"""Sorts behind every text."""


class Boundaries:
    """The latest `boundary.v1` of every boundary, in the order of their names."""

    def __init__(
        self, limit: int = MAX_BOUNDARIES, limit_bytes: int = MAX_BYTES, fields: BoundaryFields = USER_BOUNDARY
    ) -> None:
        """`fields` are the boundary fields of the deployment's scopes."""
        self.fields = fields
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._values: dict[str, bytes] = {}
        """As JSON: parsed they would take three times the memory, and few are read."""
        self._names: list[str] = []
        self._totals: Counter[str] = Counter()
        self._modes: Counter[str] = Counter()
        self._not_listed: set[int] = set()
        self._changed = asyncio.Event()
        self.version = 0
        """Version number, incremented by every change."""

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take one record; an unreadable one is ignored."""
        try:
            self._put((key or b"").decode(), value)
        except (ValueError, KeyError, TypeError, AttributeError):
            return

    def user(self, user_id: str) -> Json | None:
        try:
            return self._get(self.fields.key_of(user_id))
        except ValueError:
            return None

    def after(self, prefix: str, cursor: str | None) -> Iterator[Json]:
        """Yield the boundaries of users whose name begins with `prefix`, after the boundary `cursor`."""
        # Of several fields the name is the key.
        encoded = boundary_key([prefix]) if len(self.fields) == 1 else prefix
        start = bisect_left(self._names, encoded)
        if cursor is not None:
            start = max(start, bisect_right(self._names, cursor))
        for position in range(start, bisect_right(self._names, encoded + LAST)):
            yield from_json(self._values[self._names[position]])

    def keys(self, prefix: str) -> Sequence[str]:
        return self._names[bisect_left(self._names, prefix) : bisect_right(self._names, prefix + LAST)]

    def totals(self) -> Json:
        return totals_of(len(self._names), self._totals, self._modes) | (
            {"not_listed": len(self._not_listed)} if self._not_listed else {}
        )

    async def changed_since(self, version: int) -> None:
        while self.version == version:
            await self._changed.wait()

    def _get(self, name: str) -> Json | None:
        value = self._values.get(name)
        return None if value is None else from_json(value)

    def _put(self, name: str, value: bytes | None) -> None:
        boundary = None if value is None else from_json(value)
        if (before := self._get(name)) is not None:
            self._count_all(before, -1)
            self._bytes -= len(self._values.pop(name))
            del self._names[bisect_left(self._names, name)]
        self._not_listed.discard(hash(name))
        if value is None or boundary is None:
            return
        if len(self._values) < self._limit and self._bytes + len(value) <= self._limit_bytes:
            self._count_all(boundary, 1)
            insort(self._names, name)
            self._values[name] = value
            self._bytes += len(value)
        elif len(self._not_listed) < self._limit:
            self._not_listed.add(hash(name))

    def _count_all(self, boundary: Json, sign: int) -> None:
        _count(boundary, sign, self._totals, self._modes)
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


def sum_up(boundaries: Sequence[Json]) -> Json:
    totals: Counter[str] = Counter()
    modes: Counter[str] = Counter()
    for boundary in boundaries:
        _count(boundary, 1, totals, modes)
    return totals_of(len(boundaries), totals, modes)


def totals_of(boundaries: int, totals: Counter[str], modes: Counter[str]) -> Json:
    """Return sums as `/v1/deployment` shows them."""
    counted = {name: totals[name] for name in ("projects", "conversations", "memories")}
    embedding = {name: totals[f"embedding.{name}"] for name in ("ready", "pending", "stale", "failed")}
    shown: dict[str, Any] = {name: count for name, count in sorted(modes.items()) if count}
    criteria = {name: totals[name] for name in ("several_modes", "corrections")}
    return {"boundaries": boundaries, **counted, "embedding": embedding, "modes": shown, **criteria}


def _count(boundary: Json, sign: int, totals: Counter[str], modes: Counter[str]) -> None:
    for name in ("projects", "conversations", "memories"):
        totals[name] += sign * int(boundary[name])
    for name, count in boundary["embedding"].items():
        totals[f"embedding.{name}"] += sign * int(count)
    totals["corrections"] += sign * int(boundary.get("corrections", 0))
    totals["several_modes"] += sign * (sum(mode["memories"] > 0 for mode in boundary["modes"].values()) > 1)
    for name, mode in boundary["modes"].items():
        modes[name] += sign * int(mode["memories"])
        if not modes[name]:
            del modes[name]
