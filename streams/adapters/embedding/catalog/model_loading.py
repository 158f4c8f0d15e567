"""Load one model in its own process, agree on the space of its vectors, unload it while nothing uses it.

Guaranteed: no caller waits unless it asks to; a failed attempt is repeated with exponential backoff; a loaded model
stays loaded until it is unloaded, and only the same model is loaded again. All workers agree on the space of the same
files, whichever loads the model first: a model's file is part of its fingerprint, while its tokenizer and external
weights are compared with the deployment's record of the first ones. Different files are another space, in which
everything is re-embedded.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import structlog

from schemas.failures import ModelMissing, Unavailable
from schemas.internal.service import MODEL_KEY, ModelRecord
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from streams.deployment_log import DeploymentLog, agree, readable

log = structlog.get_logger()


MIN_RETRY_S = 5.0
"""Minimum time between two attempts: a user may declare a mode as often as they like."""


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
"""Returns the fingerprint of a loaded model's vector space."""


async def first_files(loaded: Fingerprint) -> Fingerprint:
    """Assume the files of the model's first vectors: for a deployment without records."""
    return loaded.model_copy(update={"files": None})


class ModelLoader:
    """Loads one model. `loaded` is the model, or None; `error` is the reason why the last attempt failed.

    `code` is the reason why its files could not be fetched. `unloaded`: it was loaded, and was unloaded as nothing
    needs it now. `fingerprint` is the deployment's agreed fingerprint of its vectors, set by the first load.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], ProcessEmbedder],
        backoff: LoadBackoff,
        for_users: Callable[[str], str] = str,
        agree: Agree = first_files,
        fetch: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`for_users` rewords the reason of a failure for users; the log has the original.

        `fetch` brings the model's files, or raises ModelMissing.
        """
        self._fetch = fetch
        self._for_users = for_users
        self._agree = agree
        self.loaded: ProcessEmbedder | None = None
        self.error: str | None = None
        self.code = ""
        self._again = asyncio.Event()
        self._began_at = 0.0
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
        """Retry until it is loaded, then call `on_loaded` once, on the event loop. A second call changes nothing."""
        if self._attempts is None:
            self.unloaded = False
            self._attempts = asyncio.create_task(self._try_until_loaded(on_loaded))

    def retry(self) -> None:
        """Repeat a failed attempt now, unless the last one began a moment ago."""
        if self.error is not None and time.monotonic() - self._began_at > MIN_RETRY_S:
            self._again.set()

    async def attempted(self) -> ProcessEmbedder:
        """Return the model after the current attempt. Raises ModelMissing if that, or an earlier one, has failed."""
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
            self._again.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), pause)

    async def _try(self) -> bool:
        self._began_at = time.monotonic()
        try:
            if self._fetch is not None:
                await self._fetch()
            process = self._process = self._process or self._start()
            loaded = await process.load()
            self._loaded_first = self._loaded_first or loaded
            if loaded != self._loaded_first:
                # Otherwise memories would be in two spaces.
                raise ModelMissing("its model has changed; restart the worker to use the new one")  # noqa: TRY301
            self.fingerprint = self.fingerprint or await self._agree(loaded)
        except (ModelMissing, OSError) as problem:
            self._failure = str(problem)
            self.error = self._for_users(self._failure)
            self.code = problem.code if isinstance(problem, ModelMissing) else ""
            await self._end_process()
            return False
        else:
            self.loaded, self.error, self.code = process, None, ""
            return True
        finally:
            self._tried.set()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()


WAY_OUT = (
    "memories are found by their words until they are embedded again; to avoid that, put the former files back,"
    " restart, give the new model its own name in EMBEDDERS, and run change-model"
)


class RecordedModels:
    """Compares loaded models with the deployment's records, and records new models."""

    def __init__(self, records: DeploymentLog) -> None:
        self._log = records

    async def agreed(self, loaded: Fingerprint) -> Fingerprint:
        """Return the fingerprint for the vectors of a loaded model with this digest of its files."""
        base = loaded.model_copy(update={"files": None})
        if loaded.files is None:
            return base
        own = ModelRecord(embedder=base.embedder, space=base.digest, files=loaded.files)
        recorded = await self._log.values()
        if own.key not in recorded:
            spaces = [values for key, values in recorded.items() if key.startswith(MODEL_KEY)]
            if any(model.embedder == own.embedder for values in spaces for model in readable(values, ModelRecord)):
                log.warning("embedder makes other vectors than before", embedder=own.embedder, consequence=WAY_OUT)
        first = await agree(self._log, own.key, own)
        if first.files == own.files:
            return base
        problem = "embedder has another tokenizer or other weights than before"
        log.warning(problem, embedder=own.embedder, consequence=WAY_OUT)
        return loaded


MAX_RELOAD_WAIT_S = 4.0
"""Time that a question waits for a reloading model: as long as for its vector. The largest preset takes 10 s."""

LOADING_REASON = "its model is being loaded"


class IdleModel:
    """A model that was loaded once; it implements `Prefixable` whether its process runs or not."""

    def __init__(
        self, name: str, loader: ModelLoader, begin: Callable[[], object], elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        """`begin` starts to reload the model; `elapsed` counts seconds."""
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
        """The fingerprint of the model that was loaded first; another one is refused."""
        return self._fingerprint

    async def passage(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        """Embed a text. Raises ModelMissing while the model is not loaded, and starts to load it."""
        with self._in_use():
            if (process := self._running()) is None:
                raise ModelMissing(self._missing())
            return await process.passage(text, prefix, boundary)

    async def query(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        """Embed a question, waiting for a reloading model. Raises Unavailable as the process."""
        with self._in_use():
            process = self._running()
            if process is None:
                try:
                    async with asyncio.timeout(MAX_RELOAD_WAIT_S):
                        process = await self._loader.attempted()
                except TimeoutError:
                    raise Unavailable(self._missing()) from None
            return await process.query(text, prefix, boundary)

    async def end_if_idle(self, idle_s: float) -> bool:
        """End the process if it was unused for so long; return whether it was ended."""
        if self._calls or self._loader.loaded is None or self._elapsed() - self._last_use < idle_s:
            return False
        await self._loader.unload()
        return True

    def _running(self) -> ProcessEmbedder | None:
        if self._loader.loaded is None:
            self._begin()
        return self._loader.loaded

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
