"""Models that end their process while nothing uses them, and start it again when they are needed.

A passage never waits for that: it raises ModelMissing and is made once the model is loaded, as for every model that
loads. A question waits for a while.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.catalog.model_loading import ModelLoader
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder

MAX_RELOAD_WAIT_S = 4.0
"""How long a question waits for a model that starts again: as long as for its vector. The largest preset takes 10 s."""

LOADING_REASON = "its model is being loaded"


class IdleModel:
    """A model that was loaded once; it implements `Prefixable` whether its process runs or not."""

    def __init__(
        self, name: str, loader: ModelLoader, begin: Callable[[], object], elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        """`begin` starts to load the model again; `elapsed` counts seconds."""
        assert loader.fingerprint is not None
        self._name = name
        self._loader = loader
        self._begin = begin
        self._elapsed = elapsed
        self._fingerprint = loader.fingerprint
        self._calls = 0
        self._last_use = elapsed()

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the model that was loaded first; another one is not taken."""
        return self._fingerprint

    async def passage(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        """Embed a text. Raises ModelMissing while the model is not loaded, and begins to load it."""
        with self._in_use():
            if (process := self._running()) is None:
                raise ModelMissing(self._missing())
            return await process.passage(text, prefix, boundary)

    async def query(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        """Embed a question, after a wait for the model where that starts again. Raises Unavailable as the process."""
        with self._in_use():
            process = self._running() or await self._reloaded()
            return await process.query(text, prefix, boundary)

    async def end_if_idle(self, idle_s: float) -> bool:
        """End the process if nothing has used it for so long; return whether it was ended."""
        if self._calls or self._loader.loaded is None or self._elapsed() - self._last_use < idle_s:
            return False
        await self._loader.unload()
        return True

    def _running(self) -> ProcessEmbedder | None:
        if self._loader.loaded is None:
            self._begin()
        return self._loader.loaded

    async def _reloaded(self) -> ProcessEmbedder:
        try:
            async with asyncio.timeout(MAX_RELOAD_WAIT_S):
                return await self._loader.attempted()
        except TimeoutError:
            raise Unavailable(self._missing()) from None

    def _missing(self) -> str:
        return f"embedder {self._name!r} is missing: {self._loader.error or LOADING_REASON}"

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._last_use = self._elapsed()
