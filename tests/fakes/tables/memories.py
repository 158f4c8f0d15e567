"""The table `memories` over a dict."""

from collections.abc import Iterator

from schemas.failures import Unavailable
from schemas.state.memories import Memory, MemoryExcerpt, VectorLocation


class FakeMemories:
    """`streams.flow.stores.MemoryStore` in memory; each partition has its own records.

    What is kept is the record's JSON, so that nothing survives that a changelog would not carry.
    """

    def __init__(self) -> None:
        self.full = False
        """True while no row can be written."""
        self._kept: dict[int, dict[str, str]] = {}
        self._removed: dict[tuple[int, str], VectorLocation | None] = {}
        self._forgotten: set[tuple[int, str]] = set()

    def get(self, partition: int, memory_id: str) -> Memory | None:
        value = self._kept.get(partition, {}).get(memory_id)
        return None if value is None else Memory.model_validate_json(value)

    def excerpt(self, partition: int, memory_id: str) -> MemoryExcerpt | None:
        memory = self.get(partition, memory_id)
        return None if memory is None else MemoryExcerpt.model_validate(memory.model_dump())

    def forget(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        self.remove(partition, memory_id, place)
        self._forgotten.add((partition, memory_id))

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        return (partition, memory_id) in self._forgotten

    def remove(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        """Remove a record, but not its vector location."""
        self._kept.get(partition, {}).pop(memory_id, None)
        self._forgotten.discard((partition, memory_id))
        self._removed[partition, memory_id] = place

    def is_removed(self, partition: int, memory_id: str) -> bool:
        return (partition, memory_id) in self._removed

    def rows(self, partition: int) -> Iterator[bytes]:
        yield from [value.encode() for value in self._kept.get(partition, {}).values()]

    def last_place(self, partition: int, memory_id: str) -> VectorLocation | None:
        return self._removed.get((partition, memory_id))

    def put(self, partition: int, memory: Memory) -> None:
        if self.full:
            raise Unavailable("no room on the disk")
        self._removed.pop((partition, memory.memory_id), None)
        self._forgotten.discard((partition, memory.memory_id))
        self._kept.setdefault(partition, {})[memory.memory_id] = memory.model_dump_json()

    def all(self) -> Iterator[Memory]:
        return (Memory.model_validate_json(value) for records in self._kept.values() for value in records.values())


class FakeRecords(FakeMemories):
    def __init__(self, records: dict[str, Memory]) -> None:
        super().__init__()
        self._records = records

    def get(self, partition: int, memory_id: str) -> Memory | None:
        return self._records.get(memory_id) if partition == 0 else None
