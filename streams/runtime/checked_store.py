"""RocksDB stores of tables whose damage is noticed, and which are made again from the changelog.

Enters: the calls of Faust and of `AwaitableTable` on the database of a partition. Leaves: their results. Guaranteed:
no row is taken for missing because it cannot be read. A write that fails for want of room or by a disk that is away is
`Unavailable`: RocksDB writes again some seconds after there is room, and no record is refused meanwhile. A damaged
database is set aside; where that happens at opening, an empty one takes its place and Faust's recovery fills it; in
use, the process ends, and its next start does that. Only partitions that this process holds are open.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from faust.stores import STORES
from faust.stores.rocksdb import Store

from schemas.failures import Unavailable
from streams.damaged_stores import OnDamage, set_aside
from streams.runtime.process_end import end_process
from streams.runtime.table_options import TableOptions

CHECKED_ROCKSDB = "checked"
"""The scheme of the URL by which Faust finds `CheckedStore`."""

STORES.aliases[CHECKED_ROCKSDB] = f"{__name__}:CheckedStore"

LOCK_POLL_INTERVAL_S = 0.05
"""Between two tries to open a database that is still open elsewhere."""

OWN_KEYS = b"__faust\0"
"""Prefix of the keys that are no rows of the table, as that of the persisted offset."""


def is_damage(error: Exception) -> bool:
    """True if files of a database are broken or missing. `rocksdict` raises plain exceptions with RocksDB's status."""
    message = str(error)
    return message.startswith("Corruption") or "No such file or directory" in message


def is_disk_trouble(error: Exception) -> bool:
    """True if the disk is full or fails; nothing was written, and the same write may succeed later."""
    return str(error).startswith("IO error") and not is_damage(error)


def is_locked(error: Exception) -> bool:
    """True if a database is still open, here or in another process."""
    message = str(error)
    return message.startswith("IO error") and "lock" in message.lower()


class CheckedDatabase:
    """An open database; `on_error` is called with each error, which is raised if that returns."""

    def __init__(self, database: Any, on_error: Callable[[Exception], None]) -> None:
        self._database = database
        self._get = database.get
        self._on_error = on_error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        # Spelled out, as a question reads a thousand values.
        try:
            value: bytes | None = self._get(key)
        except Exception as error:
            self._on_error(error)
            raise
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value."""
        self._call(self._database.put, key, value)

    def delete(self, key: bytes) -> None:
        """Delete a row."""
        self._call(self._database.delete, key)

    def write(self, batch: Any) -> None:
        """Write a batch of changes."""
        self._call(self._database.write, batch)

    def keys(self, from_key: bytes = b"") -> Iterator[bytes]:
        """Iterate over the keys in their order."""
        return (key for key, _ in self.items(from_key))

    def items(self, from_key: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows in the order of their keys. `Rdict.items` ends silently at a damaged block."""
        rows = self._database.iter()
        rows.seek(from_key)
        while rows.valid():
            key = rows.key()
            if not key.startswith(OWN_KEYS):
                yield key, rows.value()
            rows.next()
        self._call(rows.status)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            self._on_error(error)
            if is_disk_trouble(error):
                raise Unavailable(f"a table can't be written: {error}") from error
            raise


class CheckedStore(Store):
    """Faust's store on RocksDB over `CheckedDatabase`s."""

    on_damage: OnDamage = staticmethod(end_process)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rocksdb_options = TableOptions()

    async def assign_partitions(self, table: Any, tps: Any, generation_id: int = 0) -> None:
        """Open nothing yet: the last owner of a partition may still have it open."""

    def revoke_partitions(self, table: Any, tps: Any) -> None:
        """Close nothing yet: a recovery that is under way ends first. See `FastStartTables`."""

    async def open_when_free(self, partition: int) -> None:
        """Open the database of a held partition; waits while something has the former one open, as an iterator does."""
        while True:
            try:
                self._db_for_partition(partition)
            except Exception as error:
                if not is_locked(error):
                    raise
                await asyncio.sleep(LOCK_POLL_INTERVAL_S)
            else:
                return

    def close_partition(self, partition: int) -> None:
        """Flush and close the database of a partition, if it is open."""
        if (database := self._dbs.pop(partition, None)) is not None:
            database.close()

    async def stop(self) -> None:
        """Close everything. Faust leaves that to the garbage collector, and runs it for each table."""
        for partition in list(self._dbs):
            self.close_partition(partition)

    def apply_changelog_batch(self, batch: Iterable[Any], to_key: Any, to_value: Any) -> None:
        """Write rows of held partitions; those of others were read before a rebalance."""
        held = [event for event in batch if self.is_held(event.message.partition)]
        super().apply_changelog_batch(held, to_key, to_value)

    def is_held(self, partition: int) -> bool:
        """True if the partition may be opened here."""
        locks = getattr(self.app, "partition_locks", None)
        return locks is None or bool(locks.is_held(partition))

    def _open_for_partition(self, partition: int) -> CheckedDatabase:
        if not self.is_held(partition):
            raise KeyError(partition)
        path = self.partition_path(partition)
        try:
            database = self._open_and_read(partition)
        except Exception as error:
            if not is_damage(error) and not path.is_file():
                raise
            set_aside(path, error)
            database = self._open_and_read(partition)
        return CheckedDatabase(database, partial(self._end_if_damaged, path))

    def _open_and_read(self, partition: int) -> Any:
        """Open a database and read the persisted offset, which is where recovery would meet damage."""
        database = super()._open_for_partition(partition)
        try:
            database.get(self.offset_key)
        except Exception:
            database.close()
            raise
        return database

    def _end_if_damaged(self, path: Path, error: Exception) -> None:
        if is_damage(error):
            # The folder of an open database is renamed: nothing is written by this process any more.
            set_aside(path, error)
            self.on_damage()
