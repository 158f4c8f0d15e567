"""The general embedder in this process, with its vectors kept beside the models, so that a text is embedded once."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from agents.ports.embedder import Embedder
from schemas.embedders import EmbedderDescription
from schemas.modes import Fingerprint, Mode
from schemas.vectors import Encoded
from streams.adapters.embedding.catalog.by_language import LanguageRoutingEmbedder
from streams.adapters.embedding.catalog.entries import exported_entry
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET, MULTILINGUAL_SMALL, Preset
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision

PRECISION: Precision = "int8"
"""As the system embeds unless told otherwise."""

Arrays = dict[str, Any]
"""By key, as numpy's files have them."""


class KeptModel:
    """Implements `agents.ports.Embedder` by one model, which is exported into `models` where it is not yet."""

    def __init__(self, models: Path, preset: Preset, kept: Arrays) -> None:
        """Load the model; vectors are looked up in `kept`, and put there."""
        entry = exported_entry(models, preset, PRECISION)
        self.identity = entry.identity
        export_model(entry.local.name, entry.local.directory, PRECISION, print)
        self._model = FastembedModel.load(entry.local)
        self._kept = kept

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model."""
        return self._model.fingerprint

    async def query(self, text: str) -> Encoded:
        """Embed a question."""
        return self._embedded("query", text)

    async def passage(self, text: str) -> Encoded:
        """Embed a turn."""
        return self._embedded("passage", text)

    def _embedded(self, way: str, text: str) -> Encoded:
        key = hashlib.sha256(f"{way}\n{self.fingerprint.digest}\n{text}".encode()).hexdigest()
        if f"{key}-pooled" not in self._kept:
            made = self._model.query(text) if way == "query" else self._model.passage(text)
            spans = np.zeros((0, 2), np.int32) if made.spans is None else made.spans
            self._kept |= {f"{key}-pooled": made.pooled, f"{key}-tokens": made.tokens, f"{key}-spans": spans}
        return Encoded(self._kept[f"{key}-pooled"], self._kept[f"{key}-tokens"], None, self._kept[f"{key}-spans"])


class KeptEmbedder(LanguageRoutingEmbedder):
    """Implements `agents.ports.Embedder` and, for the one mode that there is, `agents.ports.Embedders`."""

    def __init__(self, models: Path) -> None:
        """Load both models, and the vectors that are kept in this folder."""
        self._path = models / "ranking_vectors.npz"
        self._kept: Arrays = dict(np.load(self._path)) if self._path.exists() else {}
        self._known = len(self._kept)
        others = KeptModel(models, MULTILINGUAL_SMALL, self._kept)
        super().__init__(KeptModel(models, GENERAL_PRESET, self._kept), lambda: others, others.identity)

    def of(self, mode: Mode) -> "KeptEmbedder":  # noqa: ARG002 - the port asks with it
        """This one."""
        return self

    def for_text(self, mode: Mode, text: str) -> "KeptEmbedder":  # noqa: ARG002 - as above
        """This one."""
        return self

    def cross_lingual(self, mode: Mode, text: str) -> Embedder:  # noqa: ARG002 - as above
        """The model of the two that does not read this text by itself."""
        return self.other_language_model(text)

    def described(self, name: str) -> EmbedderDescription | None:  # noqa: ARG002 - as above
        """Nothing: no mode is declared here."""
        return None

    def keep(self) -> None:
        """Write what was embedded since the last time."""
        if len(self._kept) > self._known:
            np.savez(self._path, **self._kept)
            self._known = len(self._kept)
