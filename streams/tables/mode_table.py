"""The table `modes`: what each boundary has declared, as JSON under its key."""

import faust

from schemas.modes import ModeDeclarations
from streams.tables.json_table import JsonTable

MAX_PARSED_MODES = 4096
"""Declarations that are kept parsed, as every event asks: a few megabytes."""


class ModeTable(JsonTable[str, ModeDeclarations]):
    """Implements `streams.flow.worker_context.AwaitableModes`. Its changelog is for reading, too."""

    def __init__(self, app: faust.App) -> None:
        super().__init__(app, "modes", ModeDeclarations, key=str, parsed=MAX_PARSED_MODES)
