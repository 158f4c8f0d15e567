"""The mean vectors of stretches of turns, in one space: read from the index, or made where they lie in another space.

Cosines of different spaces are never compared, so a few texts of a mode with another embedder are embedded again, by
that of the space in question. Nothing of it is kept.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.vector_index import VectorIndex
from agents.rules.clustering.normalise import normalise_rows
from agents.rules.modes.segments import Segment
from schemas.failures import ModelMissing
from schemas.memories import Memory, VectorLocation
from schemas.modes import Mode, VectorSpace, collection_name
from schemas.vectors import Matrix, Vector

PAGE_SIZE = 200
"""Vectors that are read at once: with their token vectors some megabytes."""

MAX_EMBEDDED_TEXTS = 24
"""Texts of a mode that are embedded again: a quarter of a second, and enough to tell what it is for."""


class SegmentVectors:
    """Stretches in, a row of length 1 for each out."""

    def __init__(self, index: VectorIndex, spaces: VectorSpaces) -> None:
        self._index = index
        self._spaces = spaces

    async def kept(self, stretches: Sequence[Segment], place: VectorLocation) -> tuple[Matrix, list[Segment]]:
        """The rows of stretches that lie in this place, with what they stand for: what has no vector is left out."""
        vectors = await self._read([memory.memory_id for stretch in stretches for memory in stretch], place)
        there = [[memory for memory in stretch if memory.memory_id in vectors] for stretch in stretches]
        stand: list[Segment] = [stretch for stretch in there if stretch]
        return _rows([vectors[memory.memory_id] for memory in stretch] for stretch in stand), stand

    async def of_mode(self, mode: Mode, stretches: Sequence[Segment], place: VectorLocation, here: Mode) -> Matrix:
        """The rows of what was put into a mode, in the space of `place`, which is that of the mode `here`.

        Those of the same space are read; else some texts are embedded, or where there are none the mode's description.
        """
        same = [[memory for memory in stretch if memory.embedding.space == place.space] for stretch in stretches]
        if any(same):
            kept, _ = await self.kept(
                [stretch for stretch in same if stretch], VectorLocation(mode=mode.name, space=place.space)
            )
            return kept
        texts = [[memory.text for memory in stretch] for stretch in _some(stretches)]
        return await self._made(texts or [[mode.description]] * bool(mode.description), place, here)

    async def _read(self, memory_ids: Sequence[str], place: VectorLocation) -> Mapping[str, Vector]:
        fingerprint = (await self._index.spaces()).get(collection_name(place.mode, place.space))
        if fingerprint is None:
            return {}
        space, found = VectorSpace(place.mode, fingerprint), {}
        for start in range(0, len(memory_ids), PAGE_SIZE):
            page = await self._index.vectors(space, memory_ids[start : start + PAGE_SIZE])
            found.update({memory_id: encoded.pooled for memory_id, encoded in page.items()})
        return found

    async def _made(self, texts: Sequence[Sequence[str]], place: VectorLocation, here: Mode) -> Matrix:
        try:
            embedder, space = self._spaces.resolve(here)
            if space.fingerprint.digest != place.space:
                return _rows([])
            return _rows([[(await embedder.passage(text)).pooled for text in each] for each in texts])
        except ModelMissing:
            return _rows([])


def _some(stretches: Sequence[Segment]) -> list[Sequence[Memory]]:
    """Stretches of all times, with no more turns together than are embedded."""
    size = max((len(stretch) for stretch in stretches), default=1)
    step = max(1, len(stretches) * size // MAX_EMBEDDED_TEXTS)
    return list(stretches[::step])[: max(1, MAX_EMBEDDED_TEXTS // size)]


def _rows(vectors: Iterable[Sequence[Vector]]) -> Matrix:
    """The mean of each, of length 1, shape (stretches, dim)."""
    means = [np.mean(each, axis=0) for each in vectors]
    if not means:
        return np.zeros((0, 1), np.float32)
    return normalise_rows(np.array(means, np.float32))
