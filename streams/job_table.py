"""The table `jobs`: when each boundary's modes were last gone through, as JSON under its key."""

from collections.abc import Awaitable

import faust

from schemas.jobs import Backfilled
from streams.tables import AwaitedTable, stored, unwritten


class JobTable:
    """Implements `streams.flow.job_log.KeptJobs`. Writes belong to the handling of an event of the partition."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="jobs", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)

    def get(self, partition: int, boundary: str) -> Backfilled:
        """What is known of a boundary."""
        value = stored(self.table, partition, boundary)
        return Backfilled() if value is None else Backfilled.model_validate_json(value)

    def put(self, _partition: int, boundary: str, backfilled: Backfilled) -> None:
        """Write it over what was."""
        self.table[boundary.encode()] = backfilled.model_dump_json().encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)
