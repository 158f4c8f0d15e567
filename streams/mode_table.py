"""The table `modes`: what each boundary has declared, as JSON under its key."""

from collections.abc import Awaitable

import faust

from schemas.modes import Declared
from streams.parsed_values import ParsedValues
from streams.tables import AwaitedTable, stored, unwritten

UNDECLARED = Declared()
"""What a boundary has that never declared anything."""

PARSED_MODES = 4096
"""Declarations that are kept parsed: a few megabytes."""


class ModeTable:
    """Implements `streams.flow.surroundings.KeptModes`. Its changelog is for reading, too."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="modes", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed = ParsedValues(Declared.model_validate_json, PARSED_MODES)

    def get(self, partition: int, boundary: str) -> Declared:
        """What a boundary has declared. Every event asks."""
        value = stored(self.table, partition, boundary)
        return UNDECLARED if value is None else self._parsed[value]

    def put(self, _partition: int, boundary: str, declared: Declared) -> None:
        """Write what is declared over what was."""
        self.table[boundary.encode()] = declared.model_dump_json().encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)
