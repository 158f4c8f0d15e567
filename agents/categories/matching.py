"""Finds which categories items are under, by their vectors: when a vector is made, and when categories have changed.

Enters: an item with its vector, or a scope whose items are there already. Leaves: what they are under. It writes
nothing; the keeper of memories does.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from agents.categories.members import CategoryMembers
from agents.categories.vectors import CategoryVectors
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.categories import Categories
from agents.ports.embedder import Embedder
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.categories.assignment import match_categories, reassign_categories
from schemas.categories import Taxonomy
from schemas.failures import ModelMissing, Rejected
from schemas.memories import CategoryAssignment, Memory
from schemas.scopes import boundary_of
from schemas.vectors import Matrix, Vector

BATCH_SIZE = 256
"""Items whose vectors are read together: with their token vectors a megabyte."""


class CategoryMatcher:
    """Items in, their categories out. Raises Unavailable while the index or an embedder can't be reached."""

    def __init__(
        self,
        categories: Categories,
        memories: Memories,
        members: CategoryMembers,
        index: VectorIndex,
        spaces: VectorSpaces,
        vectors: CategoryVectors,
    ) -> None:
        """Take the ports and the cache of category vectors, which partitions share."""
        self._categories = categories
        self._memories = memories
        self._members = members
        self._index = index
        self._spaces = spaces
        self._vectors = vectors

    async def match(self, memory: Memory, vector: Vector, embedder: Embedder) -> tuple[CategoryAssignment, ...] | None:
        """What an item with this vector is under; None for a turn, and where there are no categories."""
        if memory.origin == "said":
            return None
        taxonomy = self._categories.get(memory.scope)
        if not len(taxonomy):
            return None
        [fits] = await self._fitting(vector[np.newaxis], taxonomy, embedder)
        return fits

    async def reassignments(self, scope: Mapping[str, str]) -> dict[str, tuple[CategoryAssignment, ...]]:
        """By id the items of a scope that are under other categories than their records say, and under which.

        Items without a vector yet are looked at when they get it.
        """
        found: dict[str, tuple[CategoryAssignment, ...]] = {}
        under = self._members.by_item(scope, sorted(self._categories.get(scope).categories))
        for mode, ids in self._members.items_by_mode(scope).items():
            for start in range(0, len(ids), BATCH_SIZE):
                fits = await self._fits_of(mode, ids[start : start + BATCH_SIZE], scope)
                found.update(self._differing(fits, under, scope))
        return found

    def _differing(
        self,
        fits: Mapping[str, tuple[CategoryAssignment, ...]],
        under: Mapping[str, set[str]],
        scope: Mapping[str, str],
    ) -> Iterator[tuple[str, tuple[CategoryAssignment, ...]]]:
        """Those that are under others. Only their records are read: to read all would take most of the time."""
        taxonomy = self._categories.get(scope)
        for memory_id, its in fits.items():
            if {one.name for one in its} == under.get(memory_id, set()):
                continue
            memory = self._memories.get(memory_id)
            if memory is not None and memory.item is not None:
                after = reassign_categories(memory.item.categories, its, taxonomy)
                if {one.name for one in after} != {one.name for one in memory.item.categories}:
                    yield memory_id, after

    async def _fits_of(
        self, mode: str, ids: Sequence[str], scope: Mapping[str, str]
    ) -> dict[str, tuple[CategoryAssignment, ...]]:
        """What these items of a mode fit, as far as they have a vector in its space."""
        boundary = boundary_of(scope)
        try:
            embedder, space = self._spaces.resolve(self._spaces.mode(boundary, mode, scope))
            vectors = await self._index.vectors(space, ids)
            if not vectors:
                return {}
            rows = np.stack([one.pooled for one in vectors.values()])
            fits = await self._fitting(rows, self._categories.get(scope), embedder)
        except (ModelMissing, Rejected):
            return {}  # Its items are looked at when the model is there and they get vectors of it.
        return dict(zip(vectors, fits, strict=True))

    async def _fitting(
        self, rows: Matrix, taxonomy: Taxonomy, embedder: Embedder
    ) -> list[tuple[CategoryAssignment, ...]]:
        background = await self._vectors.background(embedder)
        return match_categories(rows, await self._vectors.of(taxonomy, embedder), background)
