"""The table `memories`: records as JSON under their ids; a tombstone for a forgotten or removed one."""

from collections.abc import Iterator, Mapping

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory, MemoryExcerpt, VectorLocation
from streams.flow.stores.tables import LexicalStore
from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import App
from streams.tables.json_table import ParsedValueCache

MEMORIES = "memories"
"""The name of the table."""

MAX_PARSED_MEMORIES = 2048
"""Records that are cached parsed: some 15 MB, at most 50. Parsing one takes 36 us."""

MAX_PARSED_BYTES = 8192
"""The largest record that is cached; that of a usual turn has 1,500."""

FORGOTTEN_TOMBSTONE = b"forgotten"
"""Prefix of the value of a forgotten record, kept for good so that a replay does not restore it. The location of its
vector follows, if it had one."""

REMOVED_TOMBSTONE = b"removed"
"""The same for a record that was removed and may be written again."""

TOMBSTONES = (FORGOTTEN_TOMBSTONE, REMOVED_TOMBSTONE)


def read_row(value: bytes) -> Memory | None:
    """Return the record of a row; None for a tombstone."""
    return None if value.startswith(TOMBSTONES) else Memory.model_validate_json(value)


def index_rows(words: LexicalStore, partition: int, rows: Mapping[bytes, bytes | None]) -> None:
    """Write the words of rows that were recovered or copied, where the lexical index has those of all others."""
    if not words.is_open(partition):
        words.open(partition)
    if not words.is_complete(partition):
        return
    for key, value in rows.items():
        memory = None if value is None else read_row(value)
        if memory is None:
            words.remove(partition, key.decode())
        else:
            words.put(partition, LexicalDocument(memory))


class MemoryTable:
    """Records by partition and id. Writes belong to the handling of the partition's events."""

    def __init__(self, app: App) -> None:
        self.table = create_table(app, MEMORIES)
        self._parsed = ParsedValueCache(Memory.model_validate_json, MAX_PARSED_MEMORIES, MAX_PARSED_BYTES)

    def get(self, partition: int, memory_id: str) -> Memory | None:
        value = self.table.read(partition, memory_id)
        return None if value is None or value.startswith(TOMBSTONES) else self._parsed[value]

    def excerpt(self, partition: int, memory_id: str) -> MemoryExcerpt | None:
        value = self.table.read(partition, memory_id)
        # Not cached: thousands of them would take the place of the records that questions read.
        return None if value is None or value.startswith(TOMBSTONES) else MemoryExcerpt.model_validate_json(value)

    def put(self, partition: int, memory: Memory) -> None:
        value = memory.model_dump_json().encode()
        self.table.write(partition, memory.memory_id, value)
        if memory.embedding.status == "pending":
            # It is read again when its vector is reported.
            self._parsed.add(value, memory)

    def forget(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        self.table.write(partition, memory_id, FORGOTTEN_TOMBSTONE + _encode(place))

    def remove(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        self.table.write(partition, memory_id, REMOVED_TOMBSTONE + _encode(place))

    def is_removed(self, partition: int, memory_id: str) -> bool:
        return (self.table.read(partition, memory_id) or b"").startswith(TOMBSTONES)

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        return (self.table.read(partition, memory_id) or b"").startswith(FORGOTTEN_TOMBSTONE)

    def last_place(self, partition: int, memory_id: str) -> VectorLocation | None:
        value = self.table.read(partition, memory_id) or b""
        return _location_in(value) if value.startswith(TOMBSTONES) else None

    def rows(self, partition: int) -> Iterator[bytes]:
        return (value for _, value in self.table.scan(partition) if not value.startswith(TOMBSTONES))

    def all(self) -> Iterator[Memory]:
        return (Memory.model_validate_json(value) for value in self.table.values() if not value.startswith(TOMBSTONES))


def _encode(location: VectorLocation | None) -> bytes:
    return location.model_dump_json().encode() if location else b""


def _location_in(tombstone: bytes) -> VectorLocation | None:
    location = tombstone.removeprefix(FORGOTTEN_TOMBSTONE).removeprefix(REMOVED_TOMBSTONE)
    return VectorLocation.model_validate_json(location) if location else None
