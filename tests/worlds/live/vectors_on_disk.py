"""The contents of the vector directory of a stopped worker."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.edge_index import PartitionedIndex


@dataclass(frozen=True, slots=True)
class StoredVector:
    memory_id: str
    mode: str
    dim: int


async def vectors_on_disk(data_dir: Path, memory_ids: Iterable[str], partitions: int) -> tuple[set[StoredVector], int]:
    indexes, known = PartitionedIndex(data_dir / "vectors"), list(memory_ids)
    stored, counted = set(), 0
    try:
        for partition in range(partitions):
            index = indexes.at(partition)
            for name, fingerprint in (await index.spaces()).items():
                space = VectorSpace(name.removesuffix(f"-{fingerprint.digest}"), fingerprint)
                hashes = await index.hashes(space, known)
                stored |= {StoredVector(memory_id, space.mode, fingerprint.dim) for memory_id in hashes}
                counted += await index.count(space, partition)
    finally:
        await indexes.close()
    return stored, counted
