"""One model on its way to being loaded, in a process of its own, until it is.

Enters: how to start its process. Leaves: the loaded model, or why it is not loaded. Guaranteed: nobody waits; what
failed is tried again after a pause that doubles; once loaded it stays so.
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
    """Seconds before a model is tried again: `first_s` after the first failure, then twice as long each time."""

    first_s: float = 30.0
    longest_s: float = 600.0

    def __iter__(self) -> Iterator[float]:
        """One pause after another, without end."""
        pause = self.first_s
        while True:
            yield min(pause, self.longest_s)
            pause = min(2 * pause, self.longest_s)


class ModelLoader:
    """Loads one model. `loaded` is the model once it is, `error` why the last attempt failed."""

    def __init__(self, name: str, start: Callable[[], ProcessEmbedder], pauses: LoadBackoff) -> None:
        """`start` begins a process; nothing is started before `process_now` or `begin`."""
        self.loaded: ProcessEmbedder | None = None
        self.error: str | None = None
        self._name = name
        self._start = start
        self._pauses = pauses
        self._process: ProcessEmbedder | None = None
        self._trying: asyncio.Task[None] | None = None

    def process_now(self) -> None:
        """Start the process before there is an event loop, so that it loads meanwhile."""
        self._process = self._start()

    def begin(self, on_loaded: Callable[[], None]) -> None:
        """Try until it is loaded; a second call changes nothing. `on_loaded` is called once, on the event loop."""
        if self._trying is None:
            self._trying = asyncio.create_task(self._try_until_loaded(on_loaded))

    async def close(self) -> None:
        """Stop trying and end the process."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.wait([self._trying])
        await self._end_process()

    async def _try_until_loaded(self, on_loaded: Callable[[], None]) -> None:
        for pause in self._pauses:
            if await self._try():
                on_loaded()
                return
            log.warning("an embedder's model is missing", embedder=self._name, reason=self.error, again_in_s=pause)
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
