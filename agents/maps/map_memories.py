"""Read from the memory columns which memories a map has. Synchronous: an answer is of one moment.

Enters: a request, or ids. Leaves: the memories of each cloud. Turns and memories distilled from several are points,
superseded ones and items extracted from a single turn are not.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.rules.index.columns import IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.maps.layout import MAX_LAID_OUT, MapLayout, sample_memories
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import VectorLocation
from schemas.state.modes import VectorSpace


@dataclass(frozen=True, slots=True)
class CloudMemories:
    """The memories of one cloud: `shown` are its points, `left_out` counts what the request admits besides.

    `total` counts the memories of the user in its space, whatever the request admits.
    """

    mode: str
    space: VectorSpace | None
    shown: Sequence[str] = ()
    left_out: int = 0
    total: int = 0


class MapMemories:
    """The columns of a partition's boundaries, as maps see them."""

    def __init__(self, words: LexicalIndex) -> None:
        self._words = words

    def columns(self, boundary: str) -> MemoryColumns:
        """Return the columns of turns and distilled memories. Read them before the next await."""
        return self._words.memory_columns(boundary)

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
    """Return the location of a space's vectors."""
    return VectorLocation(mode=space.mode, space=space.fingerprint.digest)


def place_of_collection(collection: str) -> VectorLocation:
    """Return the location that a collection's name stands for."""
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


def _embedded(columns: MemoryColumns, location: VectorLocation) -> Mask:
    """Return the memories with a vector in a location that are not superseded."""
    return columns.embedded(location.space) & _of_mode(columns, location.mode) & ~columns.columns.superseded


def _of_mode(columns: MemoryColumns, mode: str) -> Mask:
    return columns.of_kind(lambda kind: kind.mode == mode).astype(np.bool_) & columns.columns.live


def _ids(columns: MemoryColumns, numbers: IntArray) -> list[str]:
    return [columns.id_of[number] for number in numbers.tolist()]
