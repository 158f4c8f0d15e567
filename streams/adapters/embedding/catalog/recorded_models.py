"""Agree with the deployment's records on the vector space of a loaded model.

A model's file is part of its fingerprint; its tokenizer and weights in further files are compared by records of the
deployment, which name those of the model's first vectors: the same files are the same space, others are another one, in
which all is embedded again. Guaranteed: every worker comes to the same space for the same
files, whichever loads the model first.
"""

from collections.abc import Sequence
from typing import Protocol

import structlog

from schemas.internal.model_record import ModelRecord
from schemas.state.modes import Fingerprint

WAY_OUT = (
    "memories are found by their words until they are embedded again; to avoid that, put the former files back,"
    " restart, give the new model a name of its own in EMBEDDERS, and run change-model"
)

log = structlog.get_logger()


class ModelLog(Protocol):
    """Where the records of models are kept."""

    async def records(self) -> Sequence[ModelRecord]:
        """Return all records, first to last, with all that were written before the call."""

    async def write(self, record: ModelRecord) -> None:
        """Write a record."""


class RecordedModels:
    """Compares loaded models with the records, and records new ones."""

    def __init__(self, records: ModelLog) -> None:
        self._log = records

    async def agreed(self, loaded: Fingerprint) -> Fingerprint:
        """Return the fingerprint for the vectors of a model that is loaded with the digest of its files."""
        base = loaded.model_copy(update={"files": None})
        if loaded.files is None:
            return base
        own = ModelRecord(embedder=base.embedder, space=base.digest, files=loaded.files)
        first = await self._first_record(own)
        if first.files == own.files:
            return base
        problem = "embedder has another tokenizer or other weights than before"
        log.warning(problem, embedder=own.embedder, consequence=WAY_OUT)
        return loaded

    async def _first_record(self, own: ModelRecord) -> ModelRecord:
        """Return the first record of the model; without one write `own`."""
        records = await self._log.records()
        of_model = _of_model(records, own)
        if not of_model:
            if any(one.embedder == own.embedder for one in records):
                log.warning("embedder makes other vectors than before", embedder=own.embedder, consequence=WAY_OUT)
            await self._log.write(own)
            # Another worker may have written before, with other files: the first record counts.
            of_model = _of_model(await self._log.records(), own)
        first = of_model[0]
        if of_model[-1] != first:
            # Compaction keeps the last record, so it has to be the one that counts.
            await self._log.write(first)
        return first


def _of_model(records: Sequence[ModelRecord], own: ModelRecord) -> list[ModelRecord]:
    return [one for one in records if one.space == own.space]
