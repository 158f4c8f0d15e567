"""The mode `general` of users that declare none: by the embedder that the deployment's record names.

Enters: a worker's setting, and the record. Leaves: the mode, before any partition is served; a new record where the
setting names another embedder. Guaranteed: workers that start after one another without the setting have the same.
"""

import sys
from typing import Protocol

import structlog

from agents.ports.embedder import Embedders
from schemas.state.modes import GENERAL, GENERAL_MODE, EmbedderDescription, ModeDeclarations, general_by

SETTING = "MODESTREAM_GENERAL_EMBEDDER"

log = structlog.get_logger()


class GeneralEmbedderLog(Protocol):
    """The record in the topic `service`."""

    async def read(self) -> str | None:
        """Return the name in the last record; None without one."""

    async def write(self, embedder: str) -> None:
        """Write a record."""


class GeneralMode:
    """Completes declarations with the deployment's `general`, from `agree` on."""

    def __init__(self, wanted: str | None, embedders: Embedders) -> None:
        """`wanted` is the setting. Ends the process where it names no embedder."""
        self._embedders = embedders
        self._wanted = None if wanted is None else self._described(wanted, f"setting {SETTING}").name
        self._mode = GENERAL_MODE

    async def agree(self, records: GeneralEmbedderLog) -> None:
        """Take the recorded embedder, or record that of the setting. Ends the process where this worker lacks it."""
        recorded = await records.read() or GENERAL
        if self._wanted is not None and self._wanted != recorded:
            log.warning("general has another embedder: restart every worker", embedder=self._wanted, before=recorded)
            await records.write(self._wanted)
        name = self._wanted or recorded
        self._mode = general_by(self._described(name, f"the deployment's general embedder (see {SETTING})"))

    def complete(self, declared: ModeDeclarations) -> ModeDeclarations:
        """Return the declarations with the deployment's `general`."""
        if self._mode is GENERAL_MODE:
            return declared
        return declared.model_copy(update={"general": self._mode})

    def _described(self, name: str, where: str) -> EmbedderDescription:
        found = self._embedders.described(name)
        if found is None:
            sys.exit(f"{where}: {name!r} is neither a preset nor in MODESTREAM_EMBEDDERS: add it there, or set another")
        return found
