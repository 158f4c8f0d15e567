"""The table `files`: which memories have which files, what is still to be read, and what is to be removed.

Keys are `holders/<boundary>/<sha256>`, `turn/<boundary>/<memory id>`, `pending/<boundary>/<memory id>` and
`removed/<key of a file>`; boundaries are encoded as in records' keys.
"""

import asyncio
from collections import defaultdict

from schemas.state.files import FileHolders, FileStatuses
from streams.runtime.awaited_table import create_table
from streams.runtime.kafka_app import App

HOLDERS, TURN, PENDING, REMOVED = "holders/", "turn/", "pending/", "removed/"


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
