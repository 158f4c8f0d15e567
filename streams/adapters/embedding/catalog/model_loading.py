"""Loads one model in a process of its own, in the background.

Guaranteed: no caller waits unless it asks to; a failed attempt is repeated with exponential backoff; a loaded model
stays loaded until it is unloaded, and only the same model is loaded again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import structlog

from schemas.failures import ModelMissing
from schemas.state.modes import Fingerprint
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


Agree = Callable[[Fingerprint], Awaitable[Fingerprint]]
"""Returns the fingerprint of the space that a loaded model's vectors belong to."""


async def first_files(loaded: Fingerprint) -> Fingerprint:
    """Take the files beside the model's for those of its first vectors: where nothing is recorded."""
    return loaded.model_copy(update={"files": None})


class ModelLoader:
    """Loads one model. `loaded` is the loaded model or None, `error` why the last attempt failed.

    `unloaded`: it was loaded, and is not needed now. `fingerprint` is what is agreed on for its vectors, from the first
    load on.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], ProcessEmbedder],
        backoff: LoadBackoff,
        for_users: Callable[[str], str] = str,
        agree: Agree = first_files,
    ) -> None:
        """`for_users` words the reason of a failure, which users read; the log has the original."""
        self._for_users = for_users
        self._agree = agree
        self.loaded: ProcessEmbedder | None = None
        self.error: str | None = None
        self.unloaded = False
        self._failure = ""
        self.fingerprint: Fingerprint | None = None
        self._loaded_first: Fingerprint | None = None
        self._tried = asyncio.Event()
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
            self.unloaded = False
            self._attempts = asyncio.create_task(self._try_until_loaded(on_loaded))

    async def attempted(self) -> ProcessEmbedder:
        """Return the model after the attempt under way. Raises ModelMissing if it has failed, or the last one had."""
        if self.loaded is None and self.error is None:
            await self._tried.wait()
        if self.loaded is None:
            raise ModelMissing(f"embedder {self._name!r} is missing: {self.error}")
        return self.loaded

    async def unload(self) -> None:
        """End the process of a loaded model; `begin` loads it again."""
        self.loaded, self._attempts, self.unloaded = None, None, True
        self._tried.clear()
        await self._end_process()

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
            log.warning("embedder model is missing", embedder=self._name, reason=self._failure, again_in_s=pause)
            await asyncio.sleep(pause)

    async def _try(self) -> bool:
        try:
            process = self._process = self._process or self._start()
            loaded = await process.load()
            self._check(loaded)
            self.fingerprint = self.fingerprint or await self._agree(loaded)
        except (ModelMissing, OSError) as problem:
            self._failure = str(problem)
            self.error = self._for_users(self._failure)
            await self._end_process()
            return False
        else:
            self.loaded, self.error = process, None
            return True
        finally:
            self._tried.set()

    def _check(self, fingerprint: Fingerprint) -> None:
        """Raise ModelMissing for another model than before: memories would be in two spaces."""
        self._loaded_first = self._loaded_first or fingerprint
        if fingerprint != self._loaded_first:
            raise ModelMissing("its model has changed; restart the worker to use the new one")

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()
