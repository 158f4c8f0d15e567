"""The embedder port over its own process, which ends with the last worker that uses it.

A model in the worker's process would contend with the event loop for the interpreter: each text cost the loop several
times as much as passing it over a socket. A child that dies is restarted; its unanswered texts fail with `Unavailable`.
A query without an answer in time fails likewise.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextvars import Context
from dataclasses import asdict
from pathlib import Path
from typing import Self

import structlog

from agents.rules.text.passages import MAX_EMBEDDED_CHARS
from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.local_model import LocalModel, missing_files
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.child_pipes import EmbedderChild, HangLimits, TextDeaths, TextRefusedError
from streams.adapters.embedding.process.embedder_process import EmbedderProcess
from streams.adapters.exported_models import Precision

PASSAGES_IN_PIPE_PER_THREAD = 8
"""Passages written to the process ahead of its answers, so that it stays busy while the worker does something else, and
a flood waits here. Fewer if texts are long, see `RequestQueue`."""

CHILD_COMMAND = (sys.executable, "-m", "streams.adapters.embedding.process.child")

log = structlog.get_logger()


class ProcessEmbedder:
    """Implements `agents.ports.models.Embedder`; a prefix of None is the embedder's own."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        query_prefix: str = "",
        passage_prefix: str = "",
        *,
        threads: int = 2,
        limits: HangLimits | None = None,
        exports: bool = False,
    ) -> None:
        """Start the child; `load` and `fingerprint` wait for its model, longer if it `exports`.

        A process of the same command that another worker has started in the `directory` is used instead.
        """
        self._command = command
        self._directory = directory
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._passages_in_pipe = PASSAGES_IN_PIPE_PER_THREAD * threads
        self._limits = limits or HangLimits()
        self._load_s = self._limits.export_s if exports else self._limits.load_s
        self._deaths = TextDeaths()
        self._is_closed = False
        self._silent_since: int | None = None
        self._child = self._start_child()
        self._fingerprint: Fingerprint | None = None
        self._restarting: asyncio.Task[None] | None = None

    def _start_child(self) -> EmbedderChild:
        process = EmbedderProcess(self._command, self._directory)
        return EmbedderChild(process, self._passages_in_pipe, self._deaths, self._limits, self._begin_restart)

    @classmethod
    def start(
        cls,
        local: LocalModel,
        directory: Path,
        threads_at_once: int = 0,
        *,
        export: Precision | None = None,
        hub: str | None = None,
        limits: HangLimits | None = None,
    ) -> Self:
        """Start with a model, or connect to its process in the directory of such processes.

        0 threads means one for each core that this process may use.
        `export` is the precision to export the model in if it is missing; `hub` names the repository whose fetched
        files are used if its folder lacks files.
        """
        threads = threads_at_once or len(os.sched_getaffinity(0))
        model = asdict(local) | {"directory": str(local.directory.absolute())}
        options = {"model": model, "threads": threads, "export": export, "hub": hub}
        # Not orjson: a path may not be valid UTF-8.
        command = (*CHILD_COMMAND, json.dumps(options, sort_keys=True))
        return cls(
            command,
            directory,
            local.query_prefix,
            local.passage_prefix,
            threads=threads,
            limits=limits,
            exports=bool(export and missing_files(local)),
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the model. Blocks until it is loaded; raises ModelMissing if it can't be."""
        if self._fingerprint is None:
            self._fingerprint = self._child.hello()
        return self._fingerprint

    async def load(self) -> Fingerprint:
        """Wait until the model is loaded; call it once, first. Raises ModelMissing, with the reason."""
        self._fingerprint = await self._child.loaded(self._load_s)
        return self._fingerprint

    @property
    def problem(self) -> str | None:
        """Return why the process can't be used at the moment, None if it can."""
        if self._child.ended:
            return "its process has ended and is being restarted"
        if self._child.stuck or self._silent_since == self._child.responses:
            return "its process does not answer; it is restarted if it stays silent"
        return None

    async def passage(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        return await self._ask(frames.PASSAGE, self._passage_prefix if prefix is None else prefix, text, boundary)

    async def query(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded:
        """Embed a query within `HangLimits.query_s`; at once `Unavailable` if the process did not answer the last."""
        if self._silent_since is not None and self._silent_since == self._child.responses:
            raise Unavailable("the embedder's process does not answer")
        _ = self.fingerprint  # Loading, if not awaited before, does not count towards the query's time.
        child, before = self._child, self._child.responses
        try:
            async with asyncio.timeout(self._limits.query_s):
                return await self._ask(frames.QUERY, self._query_prefix if prefix is None else prefix, text, boundary)
        except TimeoutError as late:
            if child is self._child and child.responses == before:
                self._silent_since = before
            raise Unavailable(f"the embedder did not answer within {self._limits.query_s:g} s") from late
        except TextRefusedError as refusal:
            raise Unavailable(str(refusal)) from refusal

    async def close(self) -> None:
        """End the child; call nothing afterwards."""
        self._is_closed = True
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        await self._child.end()

    async def _ask(self, kind: int, prefix: str, text: str, boundary: str) -> Encoded:
        _ = self.fingerprint
        if self._child.ended:
            self._begin_restart()
        return await self._child.ask(kind, prefix, text[:MAX_EMBEDDED_CHARS], boundary)

    def _begin_restart(self) -> None:
        if not self._is_closed and (self._restarting is None or self._restarting.done()):
            log.warning("embedder process ended, restarting it")
            # Outside of any request: the new process outlives the one that started it, and so do its log lines.
            self._restarting = asyncio.create_task(self._restart(), context=Context())

    async def _restart(self) -> None:
        await self._child.end()
        starting = asyncio.create_task(asyncio.to_thread(self._start_child))
        try:
            child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A thread can't be cancelled: its process would be left behind.
            await (await starting).end()
            raise
        try:
            loaded = await child.loaded(self._limits.load_s)
        except ModelMissing as problem:
            await self._give_up(child, str(problem))
        except asyncio.CancelledError:
            await child.end()
            raise
        else:
            if loaded == self._fingerprint:
                self._child, self._silent_since = child, None
            else:
                await self._give_up(child, "its model has changed; restart the worker to use the new one")

    async def _give_up(self, child: EmbedderChild, reason: str) -> None:
        log.warning("embedder process could not be restarted", reason=reason)
        await child.end()
