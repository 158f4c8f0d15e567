"""Agree with the deployment's records on the vector space of a loaded model.

A model's file is part of its fingerprint; its tokenizer and weights in further files are compared by records of the
deployment, which name those of the model's first vectors: the same files are the same space, others are another one, in
which all is embedded again. Guaranteed: every worker comes to the same space for the same
files, whichever loads the model first.
"""

import structlog

from schemas.internal.service import MODEL_KEY, ModelRecord
from schemas.state.modes import Fingerprint
from streams.deployment_log import DeploymentLog, agree, readable

WAY_OUT = (
    "memories are found by their words until they are embedded again; to avoid that, put the former files back,"
    " restart, give the new model a name of its own in EMBEDDERS, and run change-model"
)

log = structlog.get_logger()


class RecordedModels:
    """Compares loaded models with the records, and records new ones."""

    def __init__(self, records: DeploymentLog) -> None:
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
        recorded = await self._log.values()
        if own.key not in recorded:
            spaces = [values for key, values in recorded.items() if key.startswith(MODEL_KEY)]
            if any(model.embedder == own.embedder for values in spaces for model in readable(values, ModelRecord)):
                log.warning("embedder makes other vectors than before", embedder=own.embedder, consequence=WAY_OUT)
        return await agree(self._log, own.key, own)
