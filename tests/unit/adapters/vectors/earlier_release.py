"""A collection as earlier releases have made it."""

from pathlib import Path

from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_shard import TOKENS_FILE


async def opened_as_by_an_earlier_release(root: Path, space: VectorSpace, *points: Point) -> EdgeIndex:
    """Return an index with these points, whose collection has its token vectors in the engine and packed."""
    made = EdgeIndex(root)
    await made.upsert(space, points)
    await made.close()
    (root / space.collection / TOKENS_FILE).unlink()
    index = EdgeIndex(root)
    await index.upsert(space, points)
    return index
