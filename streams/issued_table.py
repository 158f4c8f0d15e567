"""The table `issued`: the last changes that commands of each boundary have asked for, as JSON under its key."""

from collections.abc import Awaitable

import faust

from schemas.changes import Issued
from streams.tables import AwaitedTable, stored, unwritten


class IssuedTable:
    """Implements `streams.flow.surroundings.KeptIssued`. Writes belong to the handling of a command."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="issued", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)

    def get(self, partition: int, boundary: str) -> Issued:
        """What the commands of a boundary have asked for."""
        value = stored(self.table, partition, boundary)
        return Issued() if value is None else Issued.model_validate_json(value)

    def put(self, _partition: int, boundary: str, issued: Issued) -> None:
        """Write it over what was."""
        self.table[boundary.encode()] = issued.model_dump_json(by_alias=True).encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)
