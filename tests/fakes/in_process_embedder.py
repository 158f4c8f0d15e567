"""The embedder port over a model in this process: what a worker has in a process of its own, quicker to load.

Enters: texts, one by one, from the event loop. Leaves: their vectors. Guaranteed: the loop is never blocked; as many
passages run at once as there are threads, and a question runs beside them, never behind those that wait.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel


class InProcessEmbedder:
    """Implements `agents.ports.Embedder`.

    A run that fails is not `Unavailable`: the model is in this process, and the same text would fail again.
    """

    def __init__(self, model: FastembedModel, threads_at_once: int) -> None:
        """Take a loaded model; `threads_at_once` is how many passages run at the same time."""
        name = model.fingerprint.embedder
        self._model = model
        self._passages = ThreadPoolExecutor(threads_at_once, thread_name_prefix=f"{name}-passage")
        self._queries = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-query")

    @classmethod
    def load(cls, local: LocalModel, threads_at_once: int) -> Self:
        """Load the model, blocking."""
        return cls(FastembedModel.load(local), threads_at_once)

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie."""
        return self._model.fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept. Cancelling it takes it out of the queue."""
        return await asyncio.get_running_loop().run_in_executor(self._passages, self._model.passage, text)

    async def query(self, text: str) -> Encoded:
        """Embed a question, ahead of any passages that are waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._queries, self._model.query, text)

    async def close(self) -> None:
        """Finish what is queued and end the threads; nothing may be called afterwards."""
        await asyncio.gather(*(asyncio.to_thread(threads.shutdown) for threads in (self._passages, self._queries)))
