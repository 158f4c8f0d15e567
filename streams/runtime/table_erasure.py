"""Erases replaced rows from the files of tables: RocksDB, like Kafka, keeps them until it compacts."""

import asyncio
from typing import Any, cast

from streams.runtime.awaited_table import AwaitableTable
from streams.runtime.kafka_app import App
from streams.wire.fillers import FILLER_KEY


class TableErasure:
    """Compacts the tables of a worker, and fills their changelogs."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._compacted: dict[tuple[str, int], tuple[object, int]] = {}
        """The database of a partition and the number of its writes, when it was compacted."""

    async def erase(self, partition: int) -> None:
        """Fill the changelogs of a partition, and compact its databases if they were written to."""
        for table in list(self._app.tables.values()):
            await self._erase(cast("AwaitableTable", table), partition)

    async def _erase(self, table: AwaitableTable, partition: int) -> None:
        database = table.database(partition)
        # Before it is compacted: what is written meanwhile is a reason to compact it again.
        state = database, table.row_writes[partition]
        if self._compacted.get((table.name, partition)) != state:
            # In a thread: a large one takes seconds. Its rows may be read and written meanwhile.
            await asyncio.to_thread(_compact, database)
            self._compacted[table.name, partition] = state
        table.fill_changelog(partition, FILLER_KEY)
        for write in table.drain_pending_writes():
            await write


def _compact(database: Any) -> None:
    """Write what is in memory, so that its log is deleted, and merge all files."""
    database.flush()
    database.compact_range(None, None)
