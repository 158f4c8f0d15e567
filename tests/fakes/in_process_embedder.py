"""The embedder port over a model in this process; loads faster than the production embedder in a child process.

Enters: texts, one by one, from the event loop. Leaves: their vectors. Guaranteed: the loop is never blocked; as many
passages run at once as there are threads, and a query runs beside them without waiting.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel


class InProcessEmbedder:
    """Implements `agents.ports.models.Embedder`.

    A failure is not `Unavailable`: the same text would fail again.
    """

    def __init__(self, model: FastembedModel, threads_at_once: int) -> None:
        """Take a loaded model; `threads_at_once` is how many passages run at the same time."""
        name = model.fingerprint.embedder
        self._model = model
        self._passages = ThreadPoolExecutor(threads_at_once, thread_name_prefix=f"{name}-passage")
        self._queries = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-query")

    @classmethod
    def load(cls, local: LocalModel, threads_at_once: int) -> Self:
        return cls(FastembedModel.load(local), threads_at_once)

    @property
    def fingerprint(self) -> Fingerprint:
        return self._model.fingerprint

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed a stored text. Cancelling removes it from the queue."""
        return await asyncio.get_running_loop().run_in_executor(self._passages, self._model.passage, text)

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed a query before waiting passages."""
        return await asyncio.get_running_loop().run_in_executor(self._queries, self._model.query, text)

    async def close(self) -> None:
        """Finish the queue and end the threads. No calls may follow."""
        await asyncio.gather(*(asyncio.to_thread(threads.shutdown) for threads in (self._passages, self._queries)))
