"""Faust's store of a table: a view on the database of each partition.

Enters: the calls of Faust and of `AwaitableTable`. Leaves: their results. Guaranteed: an unreadable row never counts as
missing. A write that fails because the disk is full or away is `Unavailable`, and no record is refused meanwhile. Only
partitions that this process holds are open.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from faust.stores import STORES
from faust.stores.base import SerializedStore
from faust.types import TP

from streams.partition.database import PartitionDatabases, TableRows
from streams.runtime.process_end import end_process

PARTITION_STORE = "partition"
"""The scheme of the URL by which Faust finds `PartitionStore`."""

STORES.aliases[PARTITION_STORE] = f"{__name__}:PartitionStore"

DeriveRows = Callable[[int, Mapping[bytes, bytes | None]], None]
"""Writes data derived from rows of a partition; None for a deleted row."""

UNWRITTEN = "unwritten rows of {}"
"""Stored in place of an offset while a changelog lacks rows."""


def databases_of(app: Any) -> PartitionDatabases:
    """Return the databases of an app, which all of its tables share."""
    databases: PartitionDatabases | None = getattr(app, "databases", None)
    if databases is None:
        databases = app.databases = PartitionDatabases(Path(app.conf.datadir), end_process)
    return databases


class PartitionStore(SerializedStore[bytes, bytes]):
    """A table's rows by partition."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._views: dict[int, TableRows] = {}

    def rows(self, partition: int) -> TableRows:
        """Return the rows of a partition. Raises KeyError where another process holds it."""
        view = self._views.get(partition)
        if view is None:
            if not self.is_held(partition):
                raise KeyError(partition)
            view = self._views[partition] = databases_of(self.app).at(partition).table(self.table_name)
        return view

    def is_held(self, partition: int) -> bool:
        """True if the partition may be opened here."""
        locks = getattr(self.app, "partition_locks", None)
        return locks is None or bool(locks.is_held(partition))

    def close_partition(self, partition: int) -> None:
        """Forget the view of a partition, whose database is closed next."""
        self._views.pop(partition, None)

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset of the last changelog record applied here; None before the first."""
        self.rows(tp.partition)
        following = databases_of(self.app).at(tp.partition).offset(tp.topic)
        return None if following is None else following - 1

    def set_persisted_offset(self, tp: TP, offset: int) -> None:
        """Store it; durable with the next commit."""
        self.rows(tp.partition)
        databases_of(self.app).at(tp.partition).set_offset(tp.topic, offset + 1)

    def is_unwritten(self, tp: TP) -> bool:
        """True while the changelog lacks rows of the table."""
        return databases_of(self.app).at(tp.partition).offset(UNWRITTEN.format(tp.topic)) == 1

    def set_unwritten(self, tp: TP, *, is_unwritten: bool) -> None:
        """Note whether the changelog lacks rows, and commit that with the persisted offset."""
        databases_of(self.app).at(tp.partition).set_offset(UNWRITTEN.format(tp.topic), int(is_unwritten))
        self.commit(tp.partition)

    def apply_changelog_batch(self, batch: Iterable[Any], *_codecs: Any, **_named_codecs: Any) -> None:
        """Write rows of held partitions; those of others were read before a rebalance."""
        written: defaultdict[TP, dict[bytes, bytes | None]] = defaultdict(dict)
        offsets: dict[TP, int] = {}
        for event in batch:
            if self.is_held(event.message.partition):
                written[event.message.tp][event.message.key] = event.message.value
                offsets[event.message.tp] = event.message.offset
        for tp, rows in written.items():
            self.apply_rows(tp, rows, offsets[tp])
            self.commit(tp.partition)

    def apply_rows(self, tp: TP, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write rows of a changelog, data derived from them, and the offset of the last."""
        if (derive := self.app.derive.get(self.table_name)) is not None:  # type: ignore[attr-defined]
            derive(tp.partition, rows)
        self.rows(tp.partition).apply(rows.items())
        self.set_persisted_offset(tp, offset)

    def commit(self, partition: int) -> None:
        databases_of(self.app).at(partition).commit()

    async def stop(self) -> None:
        self._views.clear()

    def reset_state(self) -> None:
        """Faust's command to reset an app is not offered."""
        raise NotImplementedError

    async def backup_partition(self, *_arguments: Any, **_options: Any) -> None:
        """Faust's backups are not offered."""
        raise NotImplementedError

    def restore_backup(self, *_arguments: Any, **_options: Any) -> None:
        """Faust's backups are not offered."""
        raise NotImplementedError

    def _get(self, key: bytes) -> bytes | None:
        raise NotImplementedError("a read names its partition")

    def _set(self, key: bytes, value: bytes | None) -> None:
        raise NotImplementedError("a write names its partition")

    def _del(self, key: bytes) -> None:
        raise NotImplementedError("a write names its partition")

    def _contains(self, key: bytes) -> bool:
        raise NotImplementedError("a read names its partition")

    def _clear(self) -> None:
        raise NotImplementedError

    def _size(self) -> int:
        return sum(1 for _ in self._iterkeys())

    def _iterkeys(self) -> Iterator[bytes]:
        return (key for key, _ in self._iteritems())

    def _itervalues(self) -> Iterator[bytes]:
        return (value for _, value in self._iteritems())

    def _iteritems(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows of the partitions that are served."""
        topic = self.table.changelog_topic_name  # type: ignore[attr-defined]
        actives = self.app.assignor.assigned_actives()
        for partition in list(self._views):
            if TP(topic, partition) in actives:
                yield from self.rows(partition).items()
