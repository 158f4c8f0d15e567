"""Make and keep the map of each vector space of a user.

Enters: the memories of a cloud. Leaves: their places. Guaranteed: a point that has a place keeps it until the map is
laid out again, which happens when a fifth of the memories is new, from the old places; small maps are laid out before
the answer, large ones in the background, by principal components until then.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakValueDictionary

import numpy as np

from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.stores import LayoutThreads, MapLayouts
from agents.rules.clustering.clustering import normalise_rows
from agents.rules.index.columns import IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.maps.layout import (
    MAX_LAID_OUT,
    MapLayout,
    PrincipalPlane,
    Stopped,
    lay_out_from,
    place_among,
    sample_memories,
)
from schemas.failures import Unavailable
from schemas.models.vectors import Matrix, MemoryFilter
from schemas.state.memories import VectorLocation
from schemas.state.modes import VectorSpace

# Read from the memory columns which memories a map has. Synchronous: an answer is of one moment.
#
# Enters: a request, or ids. Leaves: the memories of each cloud. Turns and memories distilled from several are points,
# superseded ones and items extracted from a single turn are not.


@dataclass(frozen=True, slots=True)
class CloudMemories:
    """The memories of one cloud: `shown` are its points, `left_out` counts further memories that the request admits.

    `total` counts the memories of the user in its space, whatever the request admits.
    """

    mode: str
    space: VectorSpace | None
    shown: Sequence[str] = ()
    left_out: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapMemories:
    """The columns of a partition's boundaries, as maps see them."""

    words: LexicalIndex

    def columns(self, boundary: str) -> MemoryColumns:
        """Return the columns of turns and distilled memories. Read them before the next await."""
        return self.words.memory_columns(boundary)

    def clouds(
        self, where: MemoryFilter, spaces: Mapping[str, Sequence[VectorSpace]], limit: int
    ) -> list[CloudMemories]:
        """Return the clouds of these modes; `spaces` has the vector spaces of each, the current one first."""
        columns = self.columns(where.boundary)
        admitted = columns.admitted(where)
        every = [space for each in spaces.values() for space in each]
        drawable = {space: admitted & _embedded(columns, location_of(space)) for space in every}
        union = np.flatnonzero(np.any(list(drawable.values()), axis=0)) if drawable else np.zeros(0, np.int64)
        is_shown = np.zeros(len(admitted), np.bool_)
        is_shown[sample_memories(columns.columns, union, limit)] = True
        clouds = []
        for mode, each in spaces.items():
            without = admitted & _of_mode(columns, mode)
            for space in each:
                without &= ~drawable[space]
            clouds += self._of_mode(columns, mode, [(space, drawable[space]) for space in each], is_shown, without)
        return clouds

    def to_lay_out(self, boundary: str, location: VectorLocation) -> list[str]:
        """Return the memories of a space that are laid out: all, or a sample."""
        columns = self.columns(boundary)
        every = np.flatnonzero(_embedded(columns, location))
        return _ids(columns, sample_memories(columns.columns, every, MAX_LAID_OUT))

    def are_present(self, boundary: str, location: VectorLocation, memory_ids: Sequence[str]) -> Mask:
        """Return which of these memories belong on the map of a space."""
        columns = self.columns(boundary)
        embedded = np.append(_embedded(columns, location), np.False_)
        mask: Mask = embedded[[columns.number_of.get(memory_id, -1) for memory_id in memory_ids]]
        return mask

    def present_on(self, boundary: str, location: VectorLocation, layout: MapLayout) -> MapLayout:
        """Return a map of a space without memories that are no longer in it."""
        return layout.only(self.are_present(boundary, location, layout.ids))

    def _of_mode(
        self,
        columns: MemoryColumns,
        mode: str,
        drawable: Sequence[tuple[VectorSpace, Mask]],
        is_shown: Mask,
        without: Mask,
    ) -> list[CloudMemories]:
        """Return the clouds of one mode, at least one; memories without a vector are left out of the first."""
        filled = [(space, mask) for space, mask in drawable if mask.any()] or list(drawable[:1])
        if not filled:
            return [CloudMemories(mode, None, left_out=int(without.sum()))]
        return [
            self._cloud(columns, space, mask, is_shown, 0 if number else int(without.sum()))
            for number, (space, mask) in enumerate(filled)
        ]

    def _cloud(
        self, columns: MemoryColumns, space: VectorSpace, drawable: Mask, is_shown: Mask, without: int
    ) -> CloudMemories:
        shown = np.flatnonzero(drawable & is_shown)
        left_out = int(drawable.sum()) - len(shown) + without
        total = int(_embedded(columns, location_of(space)).sum())
        return CloudMemories(space.mode, space, _ids(columns, shown), left_out, total)


def location_of(space: VectorSpace) -> VectorLocation:
    return VectorLocation(mode=space.mode, space=space.fingerprint.digest)


def place_of_collection(collection: str) -> VectorLocation:
    mode, _, space = collection.rpartition("-")
    return VectorLocation(mode=mode, space=space)


def spaces_by_mode(
    modes: Iterable[str], stored: Collection[VectorSpace], current: Mapping[str, VectorSpace]
) -> dict[str, list[VectorSpace]]:
    """Return for each mode its vector spaces, the current one first."""
    by_mode = {mode: [current[mode]] if mode in current else [] for mode in modes}
    for space in stored:
        if space.mode in by_mode and space not in by_mode[space.mode]:
            by_mode[space.mode].append(space)
    return by_mode


MAX_AT_ONCE = 500
"""Memories that are laid out before the answer: a fifth of a second."""

MAX_WAITING = 16
"""Maximum maps that wait for their layout, about 2 MB each; further ones start with a later request."""

MapKey = tuple[str, str]
"""A boundary and a collection."""


@dataclass(frozen=True, slots=True)
class DrawnCloud:
    """The places of a cloud's memories; `layout` has them, and `is_settled` says that no better one is being made."""

    layout: MapLayout
    is_settled: bool
    is_projected: bool = False


@dataclass(slots=True)
class _Waiting:
    """A map in the making: until then it is a projection. `outdated` are memories whose vector changed meanwhile."""

    plane: PrincipalPlane | None = None
    projected: MapLayout | None = None
    outdated: set[str] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class Layouts:
    """The maps of one partition's users."""

    def __init__(
        self, memories: MapMemories, index: VectorIndex, stored: MapLayouts, threads: LayoutThreads, clock: Clock
    ) -> None:
        self._memories = memories
        self._index = index
        self._kept = stored
        self._threads = threads
        self._clock = clock
        self._waiting: dict[MapKey, _Waiting] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def draw(self, boundary: str, space: VectorSpace, cloud: CloudMemories) -> DrawnCloud:
        """Return the places of a cloud's memories. Raises Unavailable while the index is not reachable."""
        key = boundary, space.collection
        async with self._lock(boundary):
            old = await self._kept.load(boundary, space.collection)
            layout = None if old is None else self._memories.present_on(boundary, location_of(space), old)
            has_grown = layout is None or layout.has_grown(cloud.total)
            if has_grown and cloud.total <= MAX_AT_ONCE:
                async with self._threads.turn_soon():
                    ids = self._memories.to_lay_out(boundary, location_of(space))
                    ids, rows = await read_rows(self._index, space, ids)
                    places = await self._threads.run(partial(lay_out_from, layout, ids, rows))
                layout, has_grown = MapLayout.new(ids, places, cloud.total, self._clock.now()), False
            elif has_grown and key not in self._waiting and len(self._waiting) < MAX_WAITING:
                # In the background, unless that is under way.
                self._waiting[key] = waiting = _Waiting()
                waiting.task = asyncio.create_task(self._lay_out_later(key, space, cloud, layout))
            if layout is None:
                return DrawnCloud(await self._project(boundary, space, cloud), is_settled=False, is_projected=True)
            layout = await self._place(space, layout, cloud.shown)
            if layout is not old:
                await self._save(boundary, space, layout)
            return DrawnCloud(layout, is_settled=not has_grown)

    async def prune(self, boundary: str) -> None:
        """Remove from a boundary's cached maps the memories that left their space."""
        for collection in self._kept.collections(boundary):
            async with self._lock(boundary):
                layout = await self._kept.load(boundary, collection)
                if layout is not None:
                    left = self._memories.present_on(boundary, place_of_collection(collection), layout)
                    await self._keep(boundary, collection, layout, left)

    async def outdate(self, boundary: str, memory_ids: Sequence[str]) -> None:
        """Remove memories with changed vectors from the cached maps: their position changes."""
        for key, waiting in self._waiting.items():
            if key[0] == boundary:
                waiting.outdated.update(memory_ids)
        if not memory_ids or not self._kept.collections(boundary):
            return
        async with self._lock(boundary):
            for collection in self._kept.collections(boundary):
                layout = await self._kept.load(boundary, collection)
                if layout is not None:
                    await self._keep(boundary, collection, layout, layout.without(memory_ids))

    async def _keep(self, boundary: str, collection: str, old: MapLayout, layout: MapLayout) -> None:
        if layout is not old:
            await self._kept.save(boundary, collection, layout)

    async def _place(self, space: VectorSpace, layout: MapLayout, shown: Sequence[str]) -> MapLayout:
        """Return the map with a position for each shown memory that has a vector; all others keep their positions."""
        row_of = layout.rows()
        if not (missing := [memory_id for memory_id in shown if memory_id not in row_of]):
            return layout
        async with self._threads.turn_soon():
            ids, rows = await read_rows(self._index, space, missing)
            laid_out, among = await read_rows(self._index, space, layout.ids[: layout.remaining] if ids else ())
            places = layout.places[[row_of[memory_id] for memory_id in laid_out]]
            placed = await self._threads.run(partial(place_among, rows, among, places))
        return layout.extended(ids, placed) if ids else layout

    async def _save(self, boundary: str, space: VectorSpace, layout: MapLayout) -> None:
        """Cache a map, without memories forgotten since they were read."""
        current = self._memories.present_on(boundary, location_of(space), layout.trimmed())
        await self._kept.save(boundary, space.collection, current)

    async def _project(self, boundary: str, space: VectorSpace, cloud: CloudMemories) -> MapLayout:
        waiting = self._waiting.get((boundary, space.collection)) or _Waiting()
        if waiting.projected is None:
            waiting.projected = MapLayout.new([], np.zeros((0, 2), np.float32), cloud.total, self._clock.now())
        projected_ids = frozenset(waiting.projected.ids)
        async with self._threads.turn_soon():
            ids, rows = await read_rows(self._index, space, [each for each in cloud.shown if each not in projected_ids])
            if ids:
                if waiting.plane is None:
                    waiting.plane = await self._threads.run(partial(PrincipalPlane.of, rows))
                places = await self._threads.run(partial(waiting.plane.project, rows))
                waiting.projected = waiting.projected.extended(ids, places)
        return waiting.projected

    async def _lay_out_later(
        self, key: MapKey, space: VectorSpace, cloud: CloudMemories, old: MapLayout | None
    ) -> None:
        """Lay out a map, and keep it; if that fails, a later request begins again."""
        boundary, waiting = key[0], self._waiting[key]
        try:
            async with self._threads.turn():
                ids, rows = await read_rows(self._index, space, self._memories.to_lay_out(boundary, location_of(space)))
                places = await self._threads.run_long(lambda stop: lay_out_from(old, ids, rows, stop))
            layout = MapLayout.new(ids, places, cloud.total, self._clock.now())
            async with self._lock(boundary):
                await self._save(boundary, space, layout.without(waiting.outdated))
        except (Unavailable, Stopped):
            pass
        finally:
            del self._waiting[key]

    def _lock(self, boundary: str) -> asyncio.Lock:
        return self._locks.setdefault(boundary, asyncio.Lock())


PAGE_SIZE = 1024
"""Vectors that are held as single arrays at once."""


async def read_rows(index: VectorIndex, space: VectorSpace, memory_ids: Sequence[str]) -> tuple[list[str], Matrix]:
    """Return the ids with a vector in the space, in order, and their rows, shape (ids, dim)."""
    rows = np.zeros((len(memory_ids), space.fingerprint.dim), np.float32)
    ids: list[str] = []
    for start in range(0, len(memory_ids), PAGE_SIZE):
        page = memory_ids[start : start + PAGE_SIZE]
        vectors = await index.pooled(space, page)
        with_vector = [memory_id for memory_id in page if memory_id in vectors]
        if with_vector:
            pooled = np.stack([vectors[memory_id] for memory_id in with_vector])
            rows[len(ids) : len(ids) + len(with_vector)] = normalise_rows(pooled)
        ids += with_vector
    return ids, rows[: len(ids)]


def _embedded(columns: MemoryColumns, location: VectorLocation) -> Mask:
    """Return the memories with a vector in a location that are not superseded."""
    return columns.embedded(location.space) & _of_mode(columns, location.mode) & ~columns.columns.superseded


def _of_mode(columns: MemoryColumns, mode: str) -> Mask:
    return columns.of_kind(lambda kind: kind.mode == mode).astype(np.bool_) & columns.columns.live


def _ids(columns: MemoryColumns, numbers: IntArray) -> list[str]:
    return [columns.id_of[number] for number in numbers.tolist()]
