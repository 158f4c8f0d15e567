"""The tables `memories`, records as JSON with a tombstone for a forgotten or removed one, and `files`."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.files import FileHolders, FileStatuses
from schemas.state.memories import Memory, MemoryExcerpt, VectorLocation
from streams.flow.stores import LexicalStore
from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import App
from streams.tables.json_table import ParsedValueCache

MEMORIES = "memories"

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


def row_of(memory: Memory) -> bytes:
    """Return a record as its row has it, without what has its default."""
    return memory.model_dump_json(exclude_defaults=True).encode()


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
        value = row_of(memory)
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


HOLDERS, TURN, PENDING, REMOVED = "holders/", "turn/", "pending/", "removed/"


# Keys are `holders/<boundary>/<sha256>`, `turn/<boundary>/<memory id>`, `pending/<boundary>/<memory id>` and
# `removed/<key of a file>`; boundaries are encoded as in records' keys.
class FileTable:
    """Files by partition. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: App) -> None:
        self._table = create_table(app, "files")
        self.due = asyncio.Event()

    def holders(self, partition: int, boundary: str, sha256: str) -> FileHolders:
        value = self._table.read(partition, f"{HOLDERS}{boundary}/{sha256}")
        return FileHolders.model_validate_json(value) if value else FileHolders()

    def put_holders(self, partition: int, boundary: str, sha256: str, holders: FileHolders) -> None:
        key = f"{HOLDERS}{boundary}/{sha256}"
        self._put(partition, key, holders.model_dump_json().encode() if holders.memories else None)

    def put_turn(self, partition: int, boundary: str, memory_id: str, statuses: FileStatuses) -> None:
        counted = statuses.model_dump_json().encode() if statuses != FileStatuses() else None
        self._put(partition, f"{TURN}{boundary}/{memory_id}", counted)
        self._put(partition, f"{PENDING}{boundary}/{memory_id}", b"1" if statuses.pending else None)
        if statuses.pending:
            self.due.set()

    def remove_bytes(self, partition: int, key: str) -> None:
        self._put(partition, REMOVED + key, b"1")
        self.due.set()

    def removed(self, partition: int, key: str) -> None:
        self._put(partition, REMOVED + key, None)

    def hashes(self, partition: int, boundary: str) -> list[str]:
        return self._names(partition, f"{HOLDERS}{boundary}/")

    def has_turns(self, partition: int, boundary: str) -> bool:
        return next(self._table.keys_under(partition, f"{TURN}{boundary}/"), None) is not None

    def turns(self, partition: int, boundary: str) -> dict[str, FileStatuses]:
        prefix = f"{TURN}{boundary}/"
        values = {name: self._table.read(partition, prefix + name) for name in self._names(partition, prefix)}
        return {name: FileStatuses.model_validate_json(value) for name, value in values.items() if value}

    def pending(self, partition: int) -> dict[str, list[str]]:
        waiting: defaultdict[str, list[str]] = defaultdict(list)
        for key in self._table.keys_under(partition, PENDING):
            boundary, _, memory_id = key.removeprefix(PENDING).rpartition("/")
            waiting[boundary].append(memory_id)
        return waiting

    def removals(self, partition: int) -> list[str]:
        return [key.removeprefix(REMOVED) for key in self._table.keys_under(partition, REMOVED)]

    def _names(self, partition: int, prefix: str) -> list[str]:
        """Return what follows the prefix; keys of boundaries that begin with this one's are longer."""
        names = (key.removeprefix(prefix) for key in self._table.keys_under(partition, prefix))
        return [name for name in names if "/" not in name]

    def _put(self, partition: int, key: str, value: bytes | None) -> None:
        if value is not None:
            self._table.write(partition, key, value)
        elif self._table.read(partition, key) is not None:
            self._table.delete(partition, key)
