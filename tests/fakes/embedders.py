"""All embedders that modes can name, without models: the presets and two small ones, loaded on demand.

It implements `agents.ports.models.Embedders` and passes the same contract tests as the registry.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modestream_client.results import EmbedderStatus

from agents.ports.models import Embedder
from schemas.failures import ModelMissing
from schemas.models.vectors import Encoded
from schemas.state.modes import GENERAL, ConfiguredEmbedder, EmbedderDescription, Fingerprint, Mode
from streams.adapters.embedding.catalog.mode_embedders import LanguageRoutingEmbedder, ModeEmbedder, VectorCache
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET, MULTILINGUAL_SMALL, CatalogEntry, build_catalog
from tests.fakes.embedder import FakeEmbedder

NOWHERE = Path("nowhere")
"""The folder of models that are never read."""

TINY = {name: ConfiguredEmbedder(path=NOWHERE / name, dim=dim) for name, dim in {"tiny32": 32, "tiny48": 48}.items()}


class FakeModel(FakeEmbedder):
    """A fake embedder whose calls can override its prefixes."""

    async def passage(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        return await (super().passage(text) if prefix is None else self.passage_with(prefix, text))

    async def query(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        return await super().query(text) if prefix is None else self.query_with(prefix, text)


class FakeEmbedders:
    """`Embedders` over one `FakeModel` each. A model that is neither loaded nor present is missing until `load`.

    `on_loaded` is called with the name of each embedder that is loaded later.
    """

    def __init__(
        self,
        configured: Mapping[str, ConfiguredEmbedder] = TINY,
        loaded: Iterable[str] = (GENERAL, MULTILINGUAL_SMALL.name, *TINY),
        present: Iterable[str] = (),
        without_tokens: Iterable[str] = (),
    ) -> None:
        """`configured` adds embedders to the presets; `present` ones load at their first use.

        Those in `without_tokens` return no token vectors.
        """
        self.on_loaded: Callable[[str], None] = lambda _: None
        self._entries = catalogued(configured)
        pooled = frozenset(without_tokens)
        self._models = {entry.name: model_of(entry, entry.name not in pooled) for entry in self._entries.values()}
        self._recent = {name: VectorCache(model.passage) for name, model in self._models.items()}
        self._loaded = set(loaded)
        self._present = set(present)
        self._asked: set[str] = set()

    def model(self, name: str) -> FakeModel:
        return self._models[self._entries[name].name]

    def fingerprint(self, name: str) -> Fingerprint:
        entry, own = self._entries[name], self.model(name).fingerprint
        return (
            own
            if name != GENERAL or entry.multilingual is None
            else own.model_copy(update={"others": entry.multilingual.identity})
        )

    def missing(self, name: str) -> None:
        """Unload an embedder's model."""
        self._loaded.discard(self._entries[name].name)

    def bring(self, name: str) -> None:
        """Let an embedder's model load at its next use."""
        self._present.add(self._entries[name].name)

    def refuse(self, name: str, reason: str) -> None:
        """Let no mode name an embedder."""
        self._entries = {
            key: replace(entry, refused=reason) if entry.name == name else entry for key, entry in self._entries.items()
        }

    def load(self, name: str) -> None:
        """Load an embedder's model and call `on_loaded`."""
        canonical = self._entries[name].name
        self._loaded.add(canonical)
        self._models[canonical].unloaded = False
        self.on_loaded(canonical)

    async def start(self) -> None:
        """Begin to load `general`."""
        self._begin(GENERAL)

    def described(self, name: str) -> EmbedderDescription | None:
        entry = self._entries.get(name)
        return entry.description if entry else None

    def available(self) -> Sequence[EmbedderDescription]:
        return tuple({entry.name: entry.description for entry in self._entries.values()}.values())

    def prepare(self, name: str) -> None:
        """Load a present model."""
        if (entry := self._entries.get(name)) is not None:
            self._asked.add(entry.name)
            self._begin(entry.name)

    def standing(self, name: str) -> EmbedderStatus:
        entry = self._entries.get(name)
        if entry is not None and entry.name not in self._asked and entry.name not in self._loaded:
            return EmbedderStatus(state="unloaded")
        return EmbedderStatus.model_validate(self._standing(entry.name if entry else name))

    def of(self, mode: Mode) -> Embedder:
        """Return the embedder of a mode with its prefixes. Raises ModelMissing if it is not loaded."""
        entry = self._entries.get(mode.embedder)
        self._asked.add(entry.name if entry else mode.embedder)
        if entry is None or entry.name not in self._loaded:
            self._begin(entry.name if entry else mode.embedder)
            raise ModelMissing(f"embedder {mode.embedder!r} is missing")
        model, recent = self._models[entry.name], self._recent[entry.name]
        own_language = ModeEmbedder(model, recent, mode.query_prefix, mode.passage_prefix)
        if mode.embedder != GENERAL or entry.multilingual is None:
            return own_language
        others = Mode(name=mode.name, embedder=entry.multilingual.name, embedding_dim=entry.multilingual.local.dim)
        return LanguageRoutingEmbedder(own_language, lambda: self.of(others), entry.multilingual.identity)

    def for_text(self, mode: Mode, text: str) -> Embedder:
        """Return the embedder of a mode, if the model for this text's language is loaded. Raises ModelMissing."""
        read = FakeEmbedders.of(self, mode)
        if isinstance(read, LanguageRoutingEmbedder):
            read.model_for(text)
        if self.model(mode.embedder).unloaded:
            raise ModelMissing(f"embedder {mode.embedder!r} is being loaded")
        return self.of(mode)

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """Return the mode's model for other languages than the text's; None unless both are loaded."""
        try:
            embedder = FakeEmbedders.of(self, mode)
            return embedder.other_language_model(text) if isinstance(embedder, LanguageRoutingEmbedder) else None
        except ModelMissing:
            return None

    def status(self) -> dict[str, dict[str, Any]]:
        return {name: self._standing(name) for name in sorted(self._asked)}

    async def close(self) -> None:
        """Nothing to release."""

    def _begin(self, name: str) -> None:
        if name in self._present:
            self._present.discard(name)
            asyncio.get_running_loop().call_soon(self.load, name)

    def _standing(self, name: str) -> dict[str, Any]:
        if name in self._loaded:
            return {"state": "ready", "error": None}
        return {"state": "failed", "error": f"embedder {name!r} is missing"}


def catalogued(configured: Mapping[str, ConfiguredEmbedder]) -> dict[str, CatalogEntry]:
    """Return the catalog, always with the multilingual model."""
    entries = build_catalog(NOWHERE, configured, "int8")
    general = replace(entries[GENERAL], multilingual=entries[MULTILINGUAL_SMALL.name])
    return entries | dict.fromkeys(GENERAL_PRESET.names, general)


def model_of(entry: CatalogEntry, tokens: bool = True) -> FakeModel:
    local = entry.local
    return FakeModel(
        local.name,
        local.dim,
        query_prefix=local.query_prefix,
        passage_prefix=local.passage_prefix,
        max_tokens=local.max_tokens or 256,
        tokens=tokens,
        accent=local.name if entry.name == MULTILINGUAL_SMALL.name else "",
    )
