"""Faust's worker without the pauses of fixed length at its start and its end, two seconds of each life.

Enters: tables and agents that are all there before the app starts. Guaranteed: the same steps in the same order.
"""

import asyncio

import faust
from faust.tables import TableManager

SHUTDOWN_TIMEOUT_S = 1.0
"""How long tasks that were cancelled may take to end before the loop is closed over them; as long as Faust waits."""


class FastStartTables(TableManager):
    """Opens the tables at once: Faust waits a second for those that an app might still be adding."""

    async def on_start(self) -> None:
        """Call when table manager is starting."""
        await self._update_channels()
        await self.recovery.start()


class FastStartWorker(faust.Worker):
    """Ends when its last task has ended: Faust always waits a second."""

    async def _sentinel_task(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=SHUTDOWN_TIMEOUT_S)
