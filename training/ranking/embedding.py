"""The general embedder in this process, with its vectors kept beside the models, so that a text is embedded once."""

import hashlib
from pathlib import Path

import numpy as np

from schemas.embedders import EmbedderDescription
from schemas.modes import Fingerprint, Mode
from schemas.vectors import Encoded
from streams.adapters.embedding.catalog import general_entry
from streams.adapters.embedding.fastembed_model import FastembedModel
from streams.adapters.embedding.model_export import Precision, export

PRECISION: Precision = "int8"
"""As the system embeds unless told otherwise."""


class KeptEmbedder:
    """Implements `agents.ports.Embedder` and, for the one mode that there is, `agents.ports.Embedders`."""

    def __init__(self, models: Path) -> None:
        """Load the model, exported into `models` where it is not yet, and the vectors that are kept there."""
        local = general_entry(models, PRECISION).local
        export(local.name, local.directory, PRECISION, print)
        self._model = FastembedModel.load(local)
        self._path = models / "ranking_vectors.npz"
        self._kept = dict(np.load(self._path)) if self._path.exists() else {}
        self._fresh = 0

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model."""
        return self._model.fingerprint

    def of(self, mode: Mode) -> "KeptEmbedder":  # noqa: ARG002 - the port asks with it
        """This one."""
        return self

    def described(self, name: str) -> EmbedderDescription | None:  # noqa: ARG002 - as above
        """Nothing: no mode is declared here."""
        return None

    async def query(self, text: str) -> Encoded:
        """Embed a question."""
        return self._embedded("query", text)

    async def passage(self, text: str) -> Encoded:
        """Embed a turn."""
        return self._embedded("passage", text)

    def keep(self) -> None:
        """Write what was embedded since the last time."""
        if self._fresh:
            np.savez(self._path, **self._kept)
            self._fresh = 0

    def _embedded(self, way: str, text: str) -> Encoded:
        key = hashlib.sha256(f"{way}\n{self.fingerprint.digest}\n{text}".encode()).hexdigest()
        if f"{key}-pooled" not in self._kept:
            made = self._model.query(text) if way == "query" else self._model.passage(text)
            spans = np.zeros((0, 2), np.int32) if made.spans is None else made.spans
            self._kept |= {f"{key}-pooled": made.pooled, f"{key}-tokens": made.tokens, f"{key}-spans": spans}
            self._fresh += 1
        return Encoded(self._kept[f"{key}-pooled"], self._kept[f"{key}-tokens"], None, self._kept[f"{key}-spans"])
