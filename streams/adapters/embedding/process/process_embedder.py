"""The embedder port over a process of its own.

A model in the worker's process would contend with the event loop for the interpreter: each text cost the loop several
times what passing it over a pipe does. The child ends with the worker. A child that dies is restarted; its unanswered
texts fail with `Unavailable`, for the caller to retry.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

import structlog

from schemas.failures import ModelMissing
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.child_process import EmbedderChild
from streams.adapters.embedding.process.frames import PASSAGE, QUERY
from streams.adapters.exported_models import Precision

CHILD_COMMAND = (sys.executable, "-m", "streams.adapters.embedding.process.child")

log = structlog.get_logger()


class ProcessEmbedder:
    """Implements `agents.ports.Embedder`; a prefix that is None is the embedder's own."""

    def __init__(self, command: Sequence[str], query_prefix: str = "", passage_prefix: str = "") -> None:
        """Start the child; `load` and `fingerprint` wait for its model."""
        self._command = command
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._child = EmbedderChild(command)
        self._fingerprint: Fingerprint | None = None
        self._restarting: asyncio.Task[None] | None = None

    @classmethod
    def start(
        cls,
        local: LocalModel,
        threads_at_once: int = 0,
        *,
        export: Precision | None = None,
        hub: str | None = None,
        classifier: Path | None = None,
    ) -> Self:
        """Start with a model; 0 threads means one for each core that this process may use.

        `export` is the precision to export the model in if it is missing; `hub` names the repository to download it
        from if its folder lacks files; `classifier` is the file of the classifier that also runs on every passage.
        """
        threads = threads_at_once or len(os.sched_getaffinity(0))
        model = asdict(local) | {"directory": str(local.directory.absolute())}
        options = {"model": model, "threads": threads, "export": export, "hub": hub}
        options["classifier"] = None if classifier is None else str(classifier.absolute())
        return cls((*CHILD_COMMAND, json.dumps(options)), local.query_prefix, local.passage_prefix)

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the model. Blocks until it is loaded; raises ModelMissing if it can't be."""
        if self._fingerprint is None:
            self._fingerprint = self._child.hello()
        return self._fingerprint

    async def load(self) -> Fingerprint:
        """Wait until the model is loaded; to be called once, first. Raises ModelMissing, with the reason."""
        self._fingerprint = await self._child.loaded()
        return self._fingerprint

    async def passage(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a passage."""
        return await self._ask(PASSAGE, self._passage_prefix if prefix is None else prefix, text)

    async def query(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a query, ahead of all waiting passages."""
        return await self._ask(QUERY, self._query_prefix if prefix is None else prefix, text)

    async def close(self) -> None:
        """End the child; nothing may be called afterwards."""
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        await self._child.end()

    async def _ask(self, kind: int, prefix: str, text: str) -> Encoded:
        _ = self.fingerprint
        if self._child.ended and (self._restarting is None or self._restarting.done()):
            log.warning("embedder process ended, restarting it")
            self._restarting = asyncio.create_task(self._restart())
        return await self._child.ask(kind, prefix, text)

    async def _restart(self) -> None:
        await self._child.end()
        child = await asyncio.to_thread(EmbedderChild, self._command)
        try:
            loaded = await child.loaded()
        except ModelMissing as problem:
            await self._give_up(child, str(problem))
        except asyncio.CancelledError:
            await child.end()
            raise
        else:
            if loaded == self._fingerprint:
                self._child = child
            else:
                await self._give_up(child, "its model has changed; restart the worker to use the new one")

    async def _give_up(self, child: EmbedderChild, reason: str) -> None:
        log.warning("embedder process could not be restarted", reason=reason)
        await child.end()
