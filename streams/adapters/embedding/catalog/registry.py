"""All embedders that modes may name, each model in a process of its own, loaded when a mode first asks for it.

Enters: modes. Leaves: their embedders, or why a model is not loaded. Guaranteed: `general` loads from the start;
nobody waits for a model; one process and one set of recent vectors for each model, whatever prefixes modes have. The
model that `general` has for other languages is made when the first text in one comes, and loaded from the start then.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import structlog

from agents.ports.embedder import Embedder
from schemas.embedders import ConfiguredEmbedder, EmbedderDescription
from schemas.failures import ModelMissing
from schemas.modes import GENERAL, Mode
from streams.adapters.embedding.catalog.by_language import LanguageRoutingEmbedder
from streams.adapters.embedding.catalog.entries import CatalogEntry, build_catalog
from streams.adapters.embedding.catalog.mode_embedder import ModeEmbedder
from streams.adapters.embedding.catalog.model_loading import LoadBackoff, ModelLoader
from streams.adapters.embedding.catalog.recent_vectors import VectorCache
from streams.adapters.embedding.inference.model_folder import missing_files
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from streams.adapters.exported_models import Precision

MAX_VIEWS = 4096
"""Combinations of embedder and prefixes that are kept ready; users choose prefixes, so there has to be an end."""

LOADING_REASON = "its model is being loaded"

ViewKey = tuple[str, str | None, str | None]
"""Embedder as a mode names it, query prefix, passage prefix."""

log = structlog.get_logger()


class EmbedderRegistry:
    """Implements `agents.ports.Embedders`.

    `on_loaded` is called on the event loop with an embedder's name when its model has become ready.
    """

    def __init__(
        self,
        entries: Mapping[str, CatalogEntry],
        threads: int = 0,
        pauses: LoadBackoff | None = None,
        reader: Path | None = None,
    ) -> None:
        """Take the embedders by all their names, and start the process of `general`.

        `threads` is how many texts each model embeds at the same time; 0: as many as there are cores. `reader` is the
        file of the classifier of interaction modes, which reads what `general` embeds.
        """
        self._reader = reader
        self.on_loaded: Callable[[str], None] = lambda _: None
        self._entries = entries
        self._threads = threads
        self._pauses = pauses or LoadBackoff()
        self._models: dict[str, ModelLoader] = {}
        self._recent: dict[str, VectorCache] = {}
        self._views: dict[ViewKey, Embedder] = {}
        self._unknown: set[str] = set()
        self._model(entries[GENERAL]).process_now()

    @classmethod
    def open(
        cls,
        models: Path,
        configured: Mapping[str, ConfiguredEmbedder],
        precision: Precision,
        threads: int = 0,
        reader: Path | None = None,
    ) -> Self:
        """The presets, with models below the folder `models`, and what is configured; `precision` is `general`'s.

        Raises ValueError for a configured embedder that would take the place of `general`.
        """
        return cls(build_catalog(models, configured, precision), threads, reader=reader)

    async def start(self) -> None:
        """Take `general` as soon as it is loaded, and its model of other languages if that was needed before."""
        general = self._entries[GENERAL]
        self._begin(general)
        if general.others is not None and not missing_files(general.others.local):
            self._begin(general.others)

    def described(self, name: str) -> EmbedderDescription | None:
        """The preset or configured embedder of that name, or whose model has it; None for a name that is neither."""
        entry = self._entries.get(name)
        return entry.description if entry else None

    def of(self, mode: Mode) -> Embedder:
        """The loaded embedder of a mode, with the mode's prefixes. Begins to load it where it is not yet.

        Raises ModelMissing, whose text says why, while it is not loaded.
        """
        seen = (mode.embedder, mode.query_prefix, mode.passage_prefix)
        if (view := self._views.get(seen)) is not None:
            return view
        entry = self._known(mode.embedder)
        one = self._view(entry, mode.query_prefix, mode.passage_prefix)
        if len(self._views) >= MAX_VIEWS:
            self._views.clear()
        if mode.embedder != GENERAL or entry.others is None:
            return self._views.setdefault(seen, one)
        return self._views.setdefault(
            seen, LanguageRoutingEmbedder(one, partial(self._view, entry.others), entry.others.identity)
        )

    def for_text(self, mode: Mode, text: str) -> Embedder:
        """The same, once the model is loaded that reads this text. Raises ModelMissing as `of` does."""
        embedder = self.of(mode)
        if isinstance(embedder, LanguageRoutingEmbedder):
            embedder.model_for(text)
        return embedder

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """The model of a mode that does not read this text by itself; None where there is none, or not both."""
        try:
            embedder = self.of(mode)
            return embedder.other_language_model(text) if isinstance(embedder, LanguageRoutingEmbedder) else None
        except ModelMissing:
            return None

    def status(self) -> dict[str, dict[str, Any]]:
        """How each embedder stands that was asked for: `state` is ready, loading or missing, `error` says why."""
        standing = {name: status_of(self._entries[name], model) for name, model in self._models.items()}
        unknown = {name: {"state": "missing", "error": unknown_embedder(name)} for name in self._unknown}
        return dict(sorted((standing | unknown).items()))

    async def close(self) -> None:
        """End all processes; nothing may be called afterwards."""
        await asyncio.gather(*(model.close() for model in self._models.values()))

    def _view(
        self, entry: CatalogEntry, query_prefix: str | None = None, passage_prefix: str | None = None
    ) -> ModeEmbedder:
        """A model with these prefixes in place of its own. Begins to load it; raises ModelMissing until it is."""
        model = self._begin(entry)
        if model.loaded is None:
            raise ModelMissing(f"embedder {entry.name!r} is missing: {missing_reason(entry, model) or LOADING_REASON}")
        return ModeEmbedder(model.loaded, self._recent[entry.name], query_prefix, passage_prefix)

    def _known(self, name: str) -> CatalogEntry:
        entry = self._entries.get(name)
        if entry is None:
            self._unknown.add(name)
            raise ModelMissing(unknown_embedder(name))
        return entry

    def _begin(self, entry: CatalogEntry) -> ModelLoader:
        model = self._model(entry)
        model.begin(partial(self._loaded, entry.name))
        return model

    def _model(self, entry: CatalogEntry) -> ModelLoader:
        if entry.name not in self._models:
            start = partial(
                ProcessEmbedder.start,
                entry.local,
                self._threads,
                export=entry.export,
                hub=entry.hub,
                reader=self._reader if entry is self._entries[GENERAL] else None,
            )
            self._models[entry.name] = ModelLoader(entry.name, start, self._pauses)
        return self._models[entry.name]

    def _loaded(self, name: str) -> None:
        loaded = self._models[name].loaded
        assert loaded is not None
        self._recent[name] = VectorCache(loaded.passage)
        log.info("an embedder's model is loaded", embedder=name)
        try:
            self.on_loaded(name)
        except Exception:
            log.exception("what follows a loaded model failed", embedder=name)


def status_of(entry: CatalogEntry, model: ModelLoader) -> dict[str, Any]:
    """How one model stands."""
    if model.loaded is not None:
        return {"state": "ready", "error": None}
    return {"state": "missing" if model.error else "loading", "error": missing_reason(entry, model)}


def missing_reason(entry: CatalogEntry, model: ModelLoader) -> str | None:
    """Why a model is not loaded, for anybody's eyes: this machine's folders have the names of their settings."""
    folder = f"MODEL_DIR/{entry.local.directory.name}" if entry.hub else f"the path of {entry.name!r}"
    return model.error and model.error.replace(str(entry.local.directory), folder)


def unknown_embedder(name: str) -> str:
    """Why a mode that names this embedder has none."""
    return f"embedder {name!r} is neither a preset nor in EMBEDDERS"
