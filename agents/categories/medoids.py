"""Finds the members that stand for a category best, by their vectors.

Enters: ids of members. Leaves: their records, the most typical first. Without the vector index the newest stand for
all, so that nobody waits.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.categories.summary import select_anchors
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.memories import Memory
from schemas.scopes import boundary_of

MAX_COMPARED_MEMBERS = 400
"""Members whose vectors are compared: of more, every so many of them."""


class CategoryMedoids:
    """Members in, those that stand for all out. Vectors of different modes are never compared: the largest counts."""

    def __init__(self, memories: Memories, index: VectorIndex, spaces: VectorSpaces) -> None:
        self._memories = memories
        self._index = index
        self._spaces = spaces

    async def of(self, ids: Sequence[str], scope: Mapping[str, str], most: int) -> list[Memory]:
        """At most so many of these, which come newest first."""
        some = ids[:: max(1, -(-len(ids) // MAX_COMPARED_MEMBERS))]
        read = [memory for one in some if (memory := self._memories.get(one)) is not None]
        if not read:
            return []
        counts = Counter(memory.mode for memory in read)
        mode = min(counts, key=lambda name: (-counts[name], name))
        there = [memory for memory in read if memory.mode == mode]
        try:
            return await self._typical(there, mode, scope, most) or there[:most]
        except (Unavailable, ModelMissing, Rejected):
            return there[:most]

    async def _typical(
        self, memories: Sequence[Memory], mode: str, scope: Mapping[str, str], most: int
    ) -> list[Memory]:
        boundary = boundary_of(scope)
        _, space = self._spaces.resolve(self._spaces.mode(boundary, mode, scope))
        vectors = await self._index.vectors(space, [memory.memory_id for memory in memories])
        there = [memory for memory in memories if memory.memory_id in vectors]
        if not there:
            return []
        rows = np.stack([vectors[memory.memory_id].pooled for memory in there])
        return [there[place] for place in select_anchors(rows, most)]
