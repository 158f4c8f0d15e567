"""The general embedder in this process, with a vector cache on disk."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from modestream_client.results import EmbedderStatus

from agents.ports.models import Embedder
from schemas.models.vectors import Encoded
from schemas.state.modes import EmbedderDescription, Fingerprint, Mode
from streams.adapters.embedding.catalog.mode_embedders import LanguageRoutingEmbedder
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET, MULTILINGUAL_SMALL, Preset, exported_entry
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision

PRECISION: Precision = "int8"
"""The system's default."""

Arrays = dict[str, Any]
"""Arrays by key, as in an `.npz` file."""


class CachedModel:
    """Implements `agents.ports.models.Embedder` by one model."""

    def __init__(self, models: Path, preset: Preset, cache: Arrays) -> None:
        """Load the model, exporting it into `models` first if needed; vectors are cached in `cache`."""
        entry = exported_entry(models, preset, PRECISION)
        self.identity = entry.identity
        export_model(entry.local.name, entry.local.directory, PRECISION, print)
        self._model = FastembedModel.load(entry.local)
        self._cache = cache

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the model."""
        return self._model.fingerprint

    async def query(self, text: str, *, boundary: str = "") -> Encoded:  # noqa: ARG002
        """Embed a question."""
        return self._cached("query", text)

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:  # noqa: ARG002
        """Embed a turn."""
        return self._cached("passage", text)

    def _cached(self, role: str, text: str) -> Encoded:
        key = hashlib.sha256(f"{role}\n{self.fingerprint.digest}\n{text}".encode()).hexdigest()
        if f"{key}-pooled" not in self._cache:
            made = self._model.query(text) if role == "query" else self._model.passage(text)
            spans = np.zeros((0, 2), np.int32) if made.spans is None else made.spans
            self._cache |= {f"{key}-pooled": made.pooled, f"{key}-tokens": made.tokens, f"{key}-spans": spans}
        return Encoded(self._cache[f"{key}-pooled"], self._cache[f"{key}-tokens"], self._cache[f"{key}-spans"])


class CachedEmbedder(LanguageRoutingEmbedder):
    """Implements `Embedder` and, for the mode `general` alone, `Embedders` of `agents.ports.models`."""

    def __init__(self, models: Path) -> None:
        """Load both models and the vector cache from this folder."""
        self._path = models / "ranking_vectors.npz"
        self._cache: Arrays = dict(np.load(self._path)) if self._path.exists() else {}
        self._saved = len(self._cache)
        others = CachedModel(models, MULTILINGUAL_SMALL, self._cache)
        super().__init__(CachedModel(models, GENERAL_PRESET, self._cache), lambda: others, others.identity)

    def of(self, mode: Mode) -> "CachedEmbedder":  # noqa: ARG002 - signature of the port
        """Return this embedder."""
        return self

    def for_text(self, mode: Mode, text: str) -> Embedder:  # noqa: ARG002 - as above
        """Return the embedder of a text in this language."""
        return self.in_one_language(text)

    def cross_lingual(self, mode: Mode, text: str) -> Embedder:  # noqa: ARG002 - as above
        """Return the model that does not embed this text by default."""
        return self.other_language_model(text)

    def described(self, name: str) -> EmbedderDescription | None:  # noqa: ARG002 - as above
        """Return None: no mode is declared here."""
        return None

    def available(self) -> Sequence[EmbedderDescription]:
        """Return none: no mode is declared here."""
        return ()

    def prepare(self, name: str) -> None:
        """Load nothing: the models are there."""

    def standing(self, name: str) -> EmbedderStatus:  # noqa: ARG002 - as above
        """Return that the models are there."""
        return EmbedderStatus(state="ready")

    def save(self) -> None:
        """Write the cache if it has grown."""
        if len(self._cache) > self._saved:
            np.savez(self._path, **self._cache)
            self._saved = len(self._cache)
