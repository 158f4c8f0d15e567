"""The table `consolidations`: the last runs of each scope, as JSON under the scope's values (`user/project`)."""

from collections.abc import Awaitable, Mapping

import faust

from schemas.consolidation import Runs
from streams.intention_table import scope_key
from streams.tables import AwaitedTable, stored, unwritten


class ConsolidationTable:
    """Implements `agents.consolidation_port.ConsolidationRuns`. Writes belong to the handling of a record."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="consolidations", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)

    def get(self, partition: int, scope: Mapping[str, str]) -> Runs:
        """The runs of a scope; none for one that was never consolidated."""
        value = stored(self.table, partition, scope_key(scope))
        return Runs() if value is None else Runs.model_validate_json(value)

    def put(self, _partition: int, scope: Mapping[str, str], runs: Runs) -> None:
        """Write them over those before."""
        self.table[scope_key(scope).encode()] = runs.model_dump_json().encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)
