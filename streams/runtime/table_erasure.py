"""Erases replaced rows from the files of tables: RocksDB, like Kafka, keeps them until it compacts."""

import asyncio
from typing import Any, cast

import structlog

from streams.runtime.awaited_table import AwaitableTable
from streams.runtime.kafka_app import App
from streams.wire.fillers import FILLER_KEY

log = structlog.get_logger()


class TableErasure:
    """Compacts the tables of a worker, and fills their changelogs."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._compacted: dict[tuple[str, int], int] = {}
        """The last write of each database when it was compacted."""

    async def erase(self, partition: int) -> None:
        """Fill the changelogs of a partition, and compact its databases if they were written to."""
        for table in list(self._app.tables.values()):
            await self._erase(cast("AwaitableTable", table), partition)

    async def _erase(self, table: AwaitableTable, partition: int) -> None:
        database = table.database(partition)
        if self._compacted.get((table.name, partition)) != database.latest_sequence_number():
            # In a thread: a large one takes seconds. Its rows may be read and written meanwhile.
            await asyncio.to_thread(_compact, database)
        table.delete(partition, FILLER_KEY)
        self._compacted[table.name, partition] = database.latest_sequence_number()
        for write in table.drain_pending_writes():
            await write


def _compact(database: Any) -> None:
    """Write what is in memory, so that its log is deleted, and merge all files."""
    database.flush()
    database.compact_range(None, None)
