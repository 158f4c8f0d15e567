"""The cross-encoder of an installed package, in a process like that of an embedder.

Guaranteed: without a request no process is started and no file is read; a call waits for the model that it starts; only
the published file is run; the process ends after a time without use.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog

from schemas.failures import ModelMissing
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.catalog.model_loading import LoadBackoff, ModelLoader
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from streams.adapters.exported_models import CROSS_ENCODER, ExportedModel

MAX_QUESTION_CHARS = 1000
"""Maximum characters read of a question, about 200 tokens: the text has the rest of the model's 512."""

log = structlog.get_logger()


class LocalCrossEncoder:
    """Implements `agents.ports.models.CrossEncoder`."""

    def __init__(
        self,
        directory: Path,
        threads: int = 0,
        idle_s: float = 0.0,
        *,
        model: ExportedModel = CROSS_ENCODER,
        backoff: LoadBackoff | None = None,
    ) -> None:
        """`directory`, `threads` and `idle_s` as of `EmbedderRegistry`; `model` locates the files."""
        self._threads = threads
        self._idle_s = idle_s
        self._directory = directory
        self._model = model
        reason = "the cross-encoder could not be loaded, see the log"
        self._loader = ModelLoader(
            model.name, self._start, backoff or LoadBackoff(), lambda _: reason, self._published_only
        )
        self._calls = 0
        self._idle: asyncio.TimerHandle | None = None
        self._unloading: asyncio.Task[None] | None = None

    @property
    def is_loaded(self) -> bool:
        """True while its process can take requests."""
        return self._loader.loaded is not None

    async def scores(self, question: str, texts: Sequence[str], *, boundary: str = "") -> Sequence[float]:
        self._calls += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            process = self._loader.loaded
            if process is None:
                try:
                    self._model.weights_path()
                except FileNotFoundError as problem:
                    raise ModelMissing(str(problem)) from problem
                self._loader.begin(self._rest)
                process = await self._loader.attempted()
            asked = question[:MAX_QUESTION_CHARS]
            scored = await asyncio.gather(*(process.passage(text, asked, boundary) for text in texts))
        finally:
            self._calls -= 1
            self._rest()
        return [float(pair.pooled[0]) for pair in scored]

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        await self._loader.close()

    def _start(self) -> ProcessEmbedder:
        local = LocalModel(
            name=self._model.name,
            directory=self._model.weights_path().parent,
            dim=1,
            precision="int8",
            pooling="mean",
            max_tokens=self._model.max_tokens,
            model_file=self._model.weights_path().name,
            scores_pairs=True,
        )
        return ProcessEmbedder.start(local, self._directory, self._threads)

    async def _published_only(self, loaded: Fingerprint) -> Fingerprint:
        """Return the fingerprint. Raises ModelMissing for another file than the published one."""
        published = self._model.weights_sha256
        if loaded.file_sha256 != published:
            raise ModelMissing(f"its file has sha256 {loaded.file_sha256}, the published one has {published}")
        return loaded

    def _rest(self) -> None:
        """After a call, and after loading, which may take longer than the call: unload the model unless it is used."""
        if self._idle_s and not self._calls and self.is_loaded:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._unload)

    def _unload(self) -> None:
        log.info("cross-encoder is unloaded: nothing has used it", model=self._model.name)
        self._unloading = asyncio.create_task(self._loader.unload())
