"""Find the most typical members of a category by their vectors; the newest ones while the index is unavailable."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.categories.taxonomy import select_anchors
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.state.memories import Memory

MAX_COMPARED_MEMBERS = 400
"""Members that are compared; a larger category is sampled evenly."""


class CategoryMedoids:
    """Members in, medoids out. Vectors of different modes are never compared: only the largest mode counts."""

    def __init__(self, memories: Memories, index: VectorIndex, spaces: VectorSpaces) -> None:
        self._memories = memories
        self._index = index
        self._spaces = spaces

    async def of(self, ids: Sequence[str], scope: Mapping[str, str], most: int) -> list[Memory]:
        """Return at most `most` of these members, the most typical first; `ids` come newest first."""
        sample = ids[:: max(1, -(-len(ids) // MAX_COMPARED_MEMBERS))]
        memories = [memory for one in sample if (memory := self._memories.get(one)) is not None]
        if not memories:
            return []
        counts = Counter(memory.mode for memory in memories)
        mode = min(counts, key=lambda name: (-counts[name], name))
        in_mode = [memory for memory in memories if memory.mode == mode]
        try:
            return await self._typical(in_mode, mode, scope, most) or in_mode[:most]
        except (Unavailable, ModelMissing, Rejected):
            return in_mode[:most]

    async def _typical(
        self, memories: Sequence[Memory], mode: str, scope: Mapping[str, str], most: int
    ) -> list[Memory]:
        _, space = self._spaces.resolve(self._spaces.mode(memories[0].boundary, mode, scope))
        vectors = await self._index.pooled(space, [memory.memory_id for memory in memories])
        embedded = [memory for memory in memories if memory.memory_id in vectors]
        if not embedded:
            return []
        rows = np.stack([vectors[memory.memory_id] for memory in embedded])
        return [embedded[place] for place in select_anchors(rows, most)]
