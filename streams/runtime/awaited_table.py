"""The base of every table: rows in the database of a partition, and in a compacted changelog.

A write names its partition; it reaches the database at once and the changelog with the next commit. `pending_writes`
returns an awaitable for the acknowledgement of the event that caused them, so that no record is only on one worker's
disk.
"""

from collections.abc import Awaitable, Collection, Coroutine, Generator, Iterator, Mapping
from typing import Any, Protocol

import faust
import structlog

from schemas.failures import RowTooLarge
from streams.partition.database import TableRows
from streams.topics import CHANGELOG

log = structlog.get_logger()


class Commits(Protocol):
    def write(self, partition: int, changelog: str, key: bytes, value: bytes | None) -> None:
        """Note a written row, for its changelog."""

    def commit(self, partitions: Collection[int], *, is_hurried: bool = False) -> Coroutine[Any, Any, None]:
        """Make the writes durable."""


class Committed:
    """Awaitable of the commit of partitions, which starts when awaited. It need not be awaited."""

    def __init__(self, commits: Commits, partitions: Collection[int]) -> None:
        self._commits = commits
        self._partitions = partitions

    def __await__(self) -> Generator[Any, None, None]:
        return self._commits.commit(self._partitions, is_hurried=True).__await__()


def create_table(app: faust.App, name: str) -> "AwaitableTable":
    """Add a table with keys and values of bytes to the app."""
    table = AwaitableTable(app, name=name, key_type=bytes, value_type=bytes)
    app.tables.add(table)
    return table


class AwaitableTable(faust.Table):  # type: ignore[type-arg]
    """A Faust table whose rows are read and written in a partition's database.

    Faust's own reads look twice and find the partition by the current event, which a reader no longer has after its
    first await. They took a quarter of a query's time. Writes are part of the app's `commits`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("extra_topic_configs", CHANGELOG)
        super().__init__(*args, **kwargs)
        self._written: set[int] = set()

    def write(self, partition: int, key: str, value: bytes) -> None:
        """Write a row. Raises RowTooLarge, with nothing written."""
        try:
            limit_row(self.name, value)
        except RowTooLarge as error:
            log.warning("row refused", problem=error.message)
            raise
        encoded = key.encode()
        self.rows(partition).put(encoded, value)
        self._note(partition, encoded, value)

    def delete(self, partition: int, key: str) -> None:
        encoded = key.encode()
        self.rows(partition).delete(encoded)
        self._note(partition, encoded, None)

    def read(self, partition: int, key: str) -> bytes | None:
        """Return the value in a partition's store."""
        # Spelled out: a query reads a thousand values.
        store: Any = self.data
        value: bytes | None = store.rows(partition).get(key.encode())
        return value

    def scan(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a partition's store in the order on disk: a tenth of the time of single reads."""
        return self.rows(partition).items()

    def keys_under(self, partition: int, prefix: str) -> Iterator[str]:
        """Iterate over a partition's keys with a prefix in their order."""
        return (key.decode() for key in self.rows(partition).keys(prefix.encode()))

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return the awaitable of all writes since the last call."""
        written, self._written = self._written, set()
        return [Committed(self._commits, written)] if written else []

    def rows(self, partition: int) -> TableRows:
        store: Any = self.data
        rows: TableRows = store.rows(partition)
        return rows

    def _note(self, partition: int, key: bytes, value: bytes | None) -> None:
        self._commits.write(partition, self.changelog_topic.get_topic_name(), key, value)
        self._written.add(partition)

    @property
    def _commits(self) -> Commits:
        commits: Commits = self.app.commits  # type: ignore[attr-defined]
        return commits

    def _verify_source_topic_partitions(self, source_topic: str) -> None:
        """Accept an input topic with added partitions: `FixedPartitionAssignor` assigns none of them."""


# The limit of a table's row, checked before anything of it is written.
#
# Enters: a table's name and a serialised value. Guaranteed: an accepted row is far below the largest record of a
# changelog (`streams.topics.MAX_OUTPUT_BYTES`), so that Kafka never refuses a write that the local store has accepted.

MAX_ROW_BYTES = 2 * 1024 * 1024
"""An eighth of the largest record of a changelog. 256 usual categories with summaries take 0.8 MB; 64 modes with
descriptions of a page, 0.3 MB."""

MAX_MEMORY_ROW_BYTES = 12 * 1024 * 1024
"""A memory's row holds its turn, which is a record of up to 8 MiB, and its analysis."""

MAX_JOBS_ROW_BYTES = 10 * 1024 * 1024
"""A boundary's row of jobs holds 4 MiB of their answers as texts, which JSON may write twice as long."""

LIMITS: Mapping[str, tuple[str, int]] = {
    "memories": ("MAX_MEMORY_ROW_BYTES", MAX_MEMORY_ROW_BYTES),
    "jobs": ("MAX_JOBS_ROW_BYTES", MAX_JOBS_ROW_BYTES),
}
"""Name and bytes of the limit of tables that have their own."""


def limit_row(table: str, value: bytes | None) -> None:
    """Raise RowTooLarge for a value beyond the limit of its table."""
    name, limit = LIMITS.get(table, ("MAX_ROW_BYTES", MAX_ROW_BYTES))
    if value is not None and len(value) > limit:
        raise RowTooLarge(table, len(value), name, limit)
