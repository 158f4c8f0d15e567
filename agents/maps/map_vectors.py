"""Read the vectors of a map from the index. Ids in; ids that have a vector out, with rows of length 1."""

from collections.abc import Sequence

import numpy as np

from agents.ports.vector_index import VectorIndex
from agents.rules.clustering.clustering import normalise_rows
from schemas.models.vectors import Matrix
from schemas.state.modes import VectorSpace

PAGE_SIZE = 1024
"""Vectors that are held as single arrays at once."""


async def read_rows(index: VectorIndex, space: VectorSpace, memory_ids: Sequence[str]) -> tuple[list[str], Matrix]:
    """Return the ids with a vector in the space, in order, and their rows, shape (ids, dim)."""
    rows = np.zeros((len(memory_ids), space.fingerprint.dim), np.float32)
    found: list[str] = []
    for start in range(0, len(memory_ids), PAGE_SIZE):
        page = memory_ids[start : start + PAGE_SIZE]
        vectors = await index.pooled(space, page)
        known = [one for one in page if one in vectors]
        if known:
            rows[len(found) : len(found) + len(known)] = normalise_rows(np.stack([vectors[one] for one in known]))
        found += known
    return found, rows[: len(found)]
