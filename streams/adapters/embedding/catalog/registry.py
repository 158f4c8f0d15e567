"""The embedders of all modes: each model in its own process, loaded when a mode first needs it.

Guaranteed: `general` loads from the start; no caller waits for a model; one process and one cache for each model. The
model that `general` uses for other languages is exported with the first such text, and loaded at every later start. Any
model except these two is unloaded after a time without use.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import structlog
from modestream_client.results import EmbedderStatus

from agents.ports.models import Embedder
from schemas.failures import ModelMissing
from schemas.state.modes import GENERAL, ConfiguredEmbedder, EmbedderDescription, Mode
from streams.adapters.embedding.catalog.fetching import FetchLimits, ModelFetches
from streams.adapters.embedding.catalog.mode_embedders import LanguageRoutingEmbedder, ModeEmbedder, VectorCache
from streams.adapters.embedding.catalog.model_loading import (
    LOADING_REASON,
    IdleModel,
    LoadBackoff,
    ModelLoader,
    RecordedModels,
    first_files,
)
from streams.adapters.embedding.catalog.presets import CatalogEntry, build_catalog, fastembed_entries
from streams.adapters.embedding.inference.local_model import missing_files
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from streams.adapters.exported_models import Precision

MAX_VIEWS = 4096
"""Cached combinations of embedder and prefixes; bounded, as users choose the prefixes."""

MAX_UNKNOWN = 64
"""Names reported without an embedder: of modes declared under other settings."""

MAX_IDLE_CHECK_S = 60.0

ViewKey = tuple[str, str | None, str | None]
"""Embedder as a mode names it, query prefix, passage prefix."""

log = structlog.get_logger()


class EmbedderRegistry:
    """Implements `agents.ports.models.Embedders`.

    `on_loaded` is called on the event loop with an embedder's name once its model is loaded. `recorded` knows the
    models of the deployment's vectors; None: those of this process.
    """

    def __init__(
        self,
        entries: Mapping[str, CatalogEntry],
        directory: Path,
        threads: int = 0,
        backoff: LoadBackoff | None = None,
        idle_s: float = 0.0,
        limits: FetchLimits | None = None,
    ) -> None:
        """Start the process of `general`. `entries` has the embedders by all their names.

        `limits` are those of the models of fastembed's catalog, which users choose.

        `threads` is the number of texts that each model embeds at the same time; 0: the number of cores. A model is
        unloaded after `idle_s` without a use; 0: never. Workers with the same `directory` share the models' processes.
        """
        self._directory = directory
        self._idle_s = idle_s
        self._watching: asyncio.Task[None] | None = None
        self.on_loaded: Callable[[str], None] = lambda _: None
        self.recorded: RecordedModels | None = None
        self._entries = entries
        self._threads = threads
        self._backoff = backoff or LoadBackoff()
        self._limits = limits or FetchLimits()
        self._fetches = ModelFetches()
        self._models: dict[str, ModelLoader] = {}
        self._loaded_once: dict[str, IdleModel] = {}
        self._caches: dict[str, VectorCache] = {}
        self._views: dict[ViewKey, Embedder] = {}
        self._unknown: set[str] = set()
        self._model(entries[GENERAL]).process_now()

    @classmethod
    def open(
        cls,
        models: Path,
        directory: Path,
        configured: Mapping[str, ConfiguredEmbedder],
        precision: Precision,
        threads: int = 0,
        presets: Collection[str] | None = None,
        idle_s: float = 0.0,
        *,
        any_model: bool = False,
        limits: FetchLimits | None = None,
    ) -> Self:
        """Open the presets, with models below the folder `models`, and the configured embedders.

        `precision` is that of `general`; `presets` names those that modes may use, None for all. `any_model`: modes may
        name every text model of fastembed, within `limits`. For the others see the constructor. Raises ValueError for a
        configured embedder that would replace `general`.
        """
        catalog = build_catalog(models, configured, precision, presets)
        if any_model:
            limits = limits or FetchLimits()
            catalog = fastembed_entries(models, limits, taken=catalog) | catalog
        return cls(catalog, directory, threads, idle_s=idle_s, limits=limits)

    async def start(self) -> None:
        """Start to load `general`, and its model of other languages if that was exported before."""
        general = self._entries[GENERAL]
        self._begin(general)
        if general.multilingual is not None and not missing_files(general.multilingual.local):
            self._begin(general.multilingual)
        if self._idle_s and self._watching is None:
            self._watching = asyncio.create_task(self._end_idle())

    def described(self, name: str) -> EmbedderDescription | None:
        entry = self._entries.get(name)
        return entry.description if entry else None

    def available(self) -> Sequence[EmbedderDescription]:
        return tuple({entry.name: entry.description for entry in self._entries.values()}.values())

    def prepare(self, name: str) -> None:
        entry = self._entries.get(name)
        if entry is not None and entry.name not in self._loaded_once:
            self._begin(entry).retry()

    def of(self, mode: Mode) -> Embedder:
        key = (mode.embedder, mode.query_prefix, mode.passage_prefix)
        if (view := self._views.get(key)) is not None:
            return view
        entry = self._entry(mode.embedder)
        own = self._view(entry, mode.query_prefix, mode.passage_prefix)
        if len(self._views) >= MAX_VIEWS:
            self._views.clear()
        if mode.embedder != GENERAL or entry.multilingual is None:
            return self._views.setdefault(key, own)
        routing = LanguageRoutingEmbedder(own, partial(self._view, entry.multilingual), entry.multilingual.identity)
        return self._views.setdefault(key, routing)

    def for_text(self, mode: Mode, text: str) -> Embedder:
        embedder = self.of(mode)
        if isinstance(embedder, LanguageRoutingEmbedder):
            embedder = embedder.in_one_language(text)
        entry = self._entry(mode.embedder)
        if self._models[entry.name].loaded is None:
            # Its vectors are due once it is reloaded, as before its first load.
            raise self._missing(entry)
        return embedder

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """Return the mode's model of the other language; None without one, or if one of both is not loaded."""
        try:
            embedder = self.of(mode)
            return embedder.other_language_model(text) if isinstance(embedder, LanguageRoutingEmbedder) else None
        except ModelMissing:
            return None

    def status(self) -> dict[str, dict[str, Any]]:
        """Return the status of each requested embedder: `state` and, unless it is ready, `error`, the reason.

        While its files are fetched it has `fetched_bytes` and `total_bytes`; if that failed, `code`.
        """
        statuses = {name: self._status_of(name, model) for name, model in self._models.items()}
        unknown = {name: {"state": "failed", "error": _unknown_embedder(name)} for name in self._unknown}
        return dict(sorted((statuses | unknown).items()))

    def standing(self, name: str) -> EmbedderStatus:
        entry = self._entries.get(name)
        if entry is None:
            return EmbedderStatus(state="failed", error=_unknown_embedder(name))
        model = self._models.get(entry.name)
        status = {"state": "unloaded"} if model is None else self._status_of(entry.name, model)
        return EmbedderStatus.model_validate(status)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await asyncio.gather(*(model.close() for model in self._models.values()))

    def _view(
        self, entry: CatalogEntry, query_prefix: str | None = None, passage_prefix: str | None = None
    ) -> ModeEmbedder:
        """Return a model with these prefixes, None for its own; start to load it, raise ModelMissing until it is."""
        loaded = self._loaded_once.get(entry.name)
        if loaded is None:
            raise self._missing(entry)
        return ModeEmbedder(loaded, self._caches[entry.name], query_prefix, passage_prefix)

    def _missing(self, entry: CatalogEntry) -> ModelMissing:
        """Start to load a model; return why it can't be used yet."""
        reason = self._begin(entry).error or LOADING_REASON
        return ModelMissing(f"embedder {entry.name!r} is missing: {reason}")

    def _entry(self, name: str) -> CatalogEntry:
        entry = self._entries.get(name)
        if entry is None:
            if len(self._unknown) < MAX_UNKNOWN:
                self._unknown.add(name)
            raise ModelMissing(_unknown_embedder(name))
        return entry

    def _begin(self, entry: CatalogEntry) -> ModelLoader:
        model = self._model(entry)
        model.begin(partial(self._loaded, entry.name))
        return model

    def _model(self, entry: CatalogEntry) -> ModelLoader:
        if entry.name not in self._models:
            start = partial(
                ProcessEmbedder.start, entry.local, self._directory, self._threads, export=entry.export, hub=entry.hub
            )
            limits = self._limits if entry.is_of_fastembed else FetchLimits()

            def for_users(reason: str) -> str:
                # A folder is identified by its setting, not by its path.
                folder = f"MODEL_DIR/{entry.local.directory.name}" if entry.hub else f"the path of {entry.name!r}"
                return reason.replace(str(entry.local.directory), folder)

            # `recorded` is set after the process of `general` is started.
            self._models[entry.name] = ModelLoader(
                entry.name,
                start,
                self._backoff,
                for_users,
                lambda loaded: first_files(loaded) if self.recorded is None else self.recorded.agreed(loaded),
                partial(self._fetches.fetch, entry.local, entry.hub, limits) if entry.hub else None,
            )
        return self._models[entry.name]

    def _loaded(self, name: str) -> None:
        if name not in self._loaded_once:
            loaded = IdleModel(name, self._models[name], partial(self._begin, self._entries[name]))
            self._loaded_once[name], self._caches[name] = loaded, VectorCache(loaded.passage)
        log.info("embedder model is loaded", embedder=name)
        try:
            self.on_loaded(name)
        except Exception:
            log.exception("the callback for a loaded model failed", embedder=name)

    def _status_of(self, name: str, model: ModelLoader) -> dict[str, Any]:
        if model.loaded is not None:
            problem = model.loaded.problem
            return {"state": "unavailable" if problem else "ready", "error": problem}
        if model.unloaded:
            return {"state": "unloaded", "error": None}
        progress = self._fetches.progress(self._entries[name].hub or "")
        if progress is not None:
            counts = {"fetched_bytes": progress.bytes, "total_bytes": progress.total}
            return {"state": "loading", "error": None} | counts
        code = {"code": model.code} if model.error and model.code else {}
        return {"state": "failed" if model.error else "loading", "error": model.error} | code

    async def _end_idle(self) -> None:
        """Unload unused models, until cancelled."""
        general = self._entries[GENERAL]
        always_loaded = {general.name, general.multilingual.name if general.multilingual else general.name}
        while True:
            await asyncio.sleep(min(MAX_IDLE_CHECK_S, self._idle_s / 2))
            for name, model in list(self._loaded_once.items()):
                if name not in always_loaded and await model.end_if_idle(self._idle_s):
                    self._caches[name].clear()
                    log.info("embedder model is unloaded: nothing has used it", embedder=name)


def _unknown_embedder(name: str) -> str:
    return f"embedder {name!r} is neither a preset nor in EMBEDDERS"
