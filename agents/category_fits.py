"""Finds which categories items are under, by their vectors: when a vector is made, and when categories have changed.

Enters: an item with its vector, or a scope whose items are there already. Leaves: what they are under. It writes
nothing; the keeper of memories does.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import numpy as np

from agents.category_members import CategoryMembers
from agents.category_port import Categories
from agents.category_vectors import CategoryVectors
from agents.mode_spaces import ModeSpaces
from agents.ports import Embedder, Memories, VectorIndex
from agents.rules.categorizing import fitting, reassigned
from schemas.categories import Taxonomy
from schemas.failures import ModelMissing, Rejected
from schemas.memories import Assigned, Memory
from schemas.modes import VectorSpace
from schemas.vectors import Matrix, Vector

AT_ONCE = 256
"""Items whose vectors are read together: with their token vectors a megabyte."""


class CategoryFits:
    """Items in, their categories out. Raises Unavailable while the index or an embedder can't be reached."""

    def __init__(
        self,
        categories: Categories,
        memories: Memories,
        members: CategoryMembers,
        index: VectorIndex,
        spaces: ModeSpaces,
    ) -> None:
        """Take the ports."""
        self._categories = categories
        self._memories = memories
        self._members = members
        self._index = index
        self._spaces = spaces
        self._vectors = CategoryVectors()

    async def of(
        self, memory: Memory, vector: Vector, embedder: Embedder, partition: int
    ) -> tuple[Assigned, ...] | None:
        """What an item with this vector is under; None for a turn, and where there are no categories."""
        if memory.origin == "said":
            return None
        taxonomy = self._categories.get(partition, memory.scope)
        if not len(taxonomy):
            return None
        [fits] = await self._fitting(vector[np.newaxis], taxonomy, embedder)
        return fits

    async def changed(self, partition: int, scope: Mapping[str, str]) -> dict[str, tuple[Assigned, ...]]:
        """By id the items of a scope that are under other categories than their records say, and under which.

        Items without a vector yet are looked at when they get it.
        """
        found: dict[str, tuple[Assigned, ...]] = {}
        for mode, ids in self._members.items_by_mode(partition, scope).items():
            async for memory, fits in self._looked_at(mode, ids, partition, scope):
                before = memory.item.categories if memory.item else ()
                after = reassigned(before, fits, self._categories.get(partition, scope))
                if {one.name for one in after} != {one.name for one in before}:
                    found[memory.memory_id] = after
        return found

    async def _looked_at(
        self, mode: str, ids: Sequence[str], partition: int, scope: Mapping[str, str]
    ) -> AsyncIterator[tuple[Memory, tuple[Assigned, ...]]]:
        boundary = self._members.boundary(scope)
        try:
            embedder, space = self._spaces.opened(self._spaces.mode(partition, boundary, mode, scope))
        except (ModelMissing, Rejected):
            return  # Its items are looked at when the model is there and they get vectors of it.
        for start in range(0, len(ids), AT_ONCE):
            memories, rows = await self._there(space, ids[start : start + AT_ONCE], partition)
            if memories:
                fits = await self._fitting(rows, self._categories.get(partition, scope), embedder)
                for memory, its in zip(memories, fits, strict=True):
                    yield memory, its

    async def _there(self, space: VectorSpace, ids: Sequence[str], partition: int) -> tuple[list[Memory], Matrix]:
        """The records of these items that have a vector in a space, and the vectors."""
        vectors = await self._index.vectors(space, ids)
        memories = list(self._read([one for one in ids if one in vectors], partition))
        dim = space.fingerprint.dim
        rows = [vectors[one.memory_id].pooled for one in memories]
        return memories, np.stack(rows) if rows else np.empty((0, dim), np.float32)

    def _read(self, ids: Sequence[str], partition: int) -> Iterator[Memory]:
        for memory_id in ids:
            if (memory := self._memories.get(partition, memory_id)) is not None:
                yield memory

    async def _fitting(self, rows: Matrix, taxonomy: Taxonomy, embedder: Embedder) -> list[tuple[Assigned, ...]]:
        background = await self._vectors.background(embedder)
        return fitting(rows, await self._vectors.of(taxonomy, embedder), background)
