"""The mode `general` for users that have not declared it: by the embedder in the deployment's record.

Enters: a worker's setting, and the record. Leaves: the mode, before any partition is served; a new record where the
setting names another embedder. Guaranteed: workers that start one after another without the setting agree.
"""

import sys

import structlog

from agents.ports.models import Embedders
from schemas.internal.service import GENERAL_EMBEDDER_KEY, GeneralEmbedder
from schemas.state.modes import GENERAL, GENERAL_MODE, EmbedderDescription, FormerEmbedder, ModeDeclarations, general_by
from streams.deployment_log import DeploymentLog, readable

SETTING = "MODESTREAM_GENERAL_EMBEDDER"

log = structlog.get_logger()


class GeneralMode:
    """Completes declarations with the deployment's `general`, once `agree` is done."""

    def __init__(self, wanted: str | None, embedders: Embedders) -> None:
        """`wanted` is the setting. Ends the process if it does not name an embedder."""
        self._embedders = embedders
        self._wanted = None if wanted is None else self._described(wanted, f"setting {SETTING}").name
        self._mode = GENERAL_MODE

    async def agree(self, records: DeploymentLog) -> None:
        """Take the recorded embedder, or record the setting's. Ends the process if this worker lacks it."""
        recorded = readable((await records.values()).get(GENERAL_EMBEDDER_KEY, ()), GeneralEmbedder)
        chosen = recorded[-1] if recorded else None
        before = GENERAL if chosen is None else chosen.embedder
        if self._wanted is not None and self._wanted != before:
            chosen = GeneralEmbedder(embedder=self._wanted, former=before)
            log.warning("general has another embedder: restart every worker", embedder=self._wanted, before=before)
            await records.write(GENERAL_EMBEDDER_KEY, chosen)
        if chosen is not None:
            embedder = self._described(chosen.embedder, f"the deployment's general embedder (see {SETTING})")
            # The former embedder; even without its model it has vectors, which are to be rebuilt.
            found = self._embedders.described(chosen.former)
            self._mode = general_by(
                embedder, FormerEmbedder(embedder=chosen.former, embedding_dim=0 if found is None else found.dim)
            )

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
