"""Compute mean vectors of conversation segments in one space: read from the index, or embedded from their texts.

Cosines of different spaces are never compared: for a mode with another embedder a few texts are embedded again, by the
embedder of this space. Nothing is stored.
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
"""Vectors that are read at once: with token vectors some megabytes."""

MAX_EMBEDDED_TEXTS = 24
"""Texts of a mode that are embedded again: a quarter of a second, and enough to represent the mode."""


class SegmentVectors:
    """Segments in, one row of length 1 for each out."""

    def __init__(self, index: VectorIndex, spaces: VectorSpaces) -> None:
        self._index = index
        self._spaces = spaces

    async def stored(self, segments: Sequence[Segment], place: VectorLocation) -> tuple[Matrix, list[Segment]]:
        """Return the rows of these segments in a location, and the segments; turns without a vector are left out."""
        vectors = await self._read([memory.memory_id for segment in segments for memory in segment], place)
        stored = [[memory for memory in segment if memory.memory_id in vectors] for segment in segments]
        remaining: list[Segment] = [segment for segment in stored if segment]
        return _rows([vectors[memory.memory_id] for memory in segment] for segment in remaining), remaining

    async def of_mode(self, mode: Mode, segments: Sequence[Segment], place: VectorLocation, here: Mode) -> Matrix:
        """Return the rows of a mode's segments in the space of `place`, which is that of the mode `here`.

        Reads the vectors of the same space; otherwise embeds some texts, or without texts the mode's description.
        """
        same = [[memory for memory in segment if memory.embedding.space == place.space] for segment in segments]
        if any(same):
            location = VectorLocation(mode=mode.name, space=place.space)
            rows, _ = await self.stored([segment for segment in same if segment], location)
            return rows
        texts = [[memory.text for memory in segment] for segment in _sample(segments)]
        return await self._embed(texts or [[mode.description]] * bool(mode.description), place, here)

    async def _read(self, memory_ids: Sequence[str], place: VectorLocation) -> Mapping[str, Vector]:
        fingerprint = (await self._index.spaces()).get(collection_name(place.mode, place.space))
        if fingerprint is None:
            return {}
        space, found = VectorSpace(place.mode, fingerprint), {}
        for start in range(0, len(memory_ids), PAGE_SIZE):
            page = await self._index.vectors(space, memory_ids[start : start + PAGE_SIZE])
            found.update({memory_id: encoded.pooled for memory_id, encoded in page.items()})
        return found

    async def _embed(self, texts: Sequence[Sequence[str]], place: VectorLocation, here: Mode) -> Matrix:
        try:
            embedder, space = self._spaces.resolve(here)
            if space.fingerprint.digest != place.space:
                return _rows([])
            return _rows([[(await embedder.passage(text)).pooled for text in each] for each in texts])
        except ModelMissing:
            return _rows([])


def _sample(segments: Sequence[Segment]) -> list[Sequence[Memory]]:
    """Sample segments evenly over time, with at most `MAX_EMBEDDED_TEXTS` turns."""
    size = max((len(segment) for segment in segments), default=1)
    step = max(1, len(segments) * size // MAX_EMBEDDED_TEXTS)
    return list(segments[::step])[: max(1, MAX_EMBEDDED_TEXTS // size)]


def _rows(vectors: Iterable[Sequence[Vector]]) -> Matrix:
    """Return the mean of each, of length 1, shape (segments, dim)."""
    means = [np.mean(each, axis=0) for each in vectors]
    if not means:
        return np.zeros((0, 1), np.float32)
    return normalise_rows(np.array(means, np.float32))
