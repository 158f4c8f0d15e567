"""Loads one model in a process of its own, in the background.

Guaranteed: no caller waits; a failed attempt is repeated with exponential backoff; a loaded model stays loaded.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from schemas.failures import ModelMissing
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LoadBackoff:
    """Seconds before the next attempt: `first_s` after the first failure, then doubled up to `longest_s`."""

    first_s: float = 30.0
    longest_s: float = 600.0

    def __iter__(self) -> Iterator[float]:
        pause = self.first_s
        while True:
            yield min(pause, self.longest_s)
            pause = min(2 * pause, self.longest_s)


class ModelLoader:
    """Loads one model. `loaded` is the loaded model or None, `error` why the last attempt failed."""

    def __init__(self, name: str, start: Callable[[], ProcessEmbedder], backoff: LoadBackoff) -> None:
        self.loaded: ProcessEmbedder | None = None
        self.error: str | None = None
        self._name = name
        self._start = start
        self._backoff = backoff
        self._process: ProcessEmbedder | None = None
        self._attempts: asyncio.Task[None] | None = None

    def process_now(self) -> None:
        """Start the process before there is an event loop, so that the model loads meanwhile."""
        self._process = self._start()

    def begin(self, on_loaded: Callable[[], None]) -> None:
        """Try until it is loaded, then call `on_loaded` once, on the event loop. A second call changes nothing."""
        if self._attempts is None:
            self._attempts = asyncio.create_task(self._try_until_loaded(on_loaded))

    async def close(self) -> None:
        """Stop trying and end the process."""
        if self._attempts is not None:
            self._attempts.cancel()
            await asyncio.wait([self._attempts])
        await self._end_process()

    async def _try_until_loaded(self, on_loaded: Callable[[], None]) -> None:
        for pause in self._backoff:
            if await self._try():
                on_loaded()
                return
            log.warning("embedder model is missing", embedder=self._name, reason=self.error, again_in_s=pause)
            await asyncio.sleep(pause)

    async def _try(self) -> bool:
        try:
            self._process = self._process or self._start()
            await self._process.load()
        except (ModelMissing, OSError) as problem:
            self.error = str(problem)
            await self._end_process()
            return False
        self.loaded, self.error = self._process, None
        return True

    async def _end_process(self) -> None:
        if self._process is not None:
            await self._process.close()
            self._process = None
