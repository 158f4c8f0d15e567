"""Fills the changelogs of tables, so that Kafka compacts what was replaced; SQLite overwrites it at once."""

from typing import cast

from streams.runtime.awaited_table import AwaitableTable
from streams.runtime.kafka_app import App
from streams.wire.fillers import FILLER_KEY


class TableErasure:
    """Fills the changelogs of the tables of a worker."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def erase(self, partition: int) -> None:
        """Fill the changelogs of a partition."""
        for table in list(self._app.tables.values()):
            await self._erase(cast("AwaitableTable", table), partition)

    async def _erase(self, table: AwaitableTable, partition: int) -> None:
        table.fill_changelog(partition, FILLER_KEY)
        for write in table.drain_pending_writes():
            await write
