"""The embedder port over a process of its own, which ends with the worker, and the worker's end of the pipes to it.

A model in the worker's process would contend with the event loop for the interpreter: each text cost the loop several
times what passing it over a pipe does. A child that dies is restarted; its unanswered texts fail with `Unavailable`.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Self

import structlog

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process import frames
from streams.adapters.exported_models import Precision

PROJECT_ROOT = Path(__file__).parents[4]
"""The child's working directory: the project is not an installed package."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Passages run in parallel on all cores, so one matrix product must not use more than one."""

CHILD_STOP_TIMEOUT_S = 5.0


class EmbedderChild:
    """One run of the embedder's process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=PROJECT_ROOT,
            env=os.environ | ONE_THREAD,
        )
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Encoded]] = {}
        self._writing: asyncio.WriteTransport | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self.ended = False

    def hello(self) -> Fingerprint:
        """Read the first frame. Blocks; to be called once, before any request.

        Raises ModelMissing, with the reason, if the child could not load its model.
        """
        head = self._read_blocking(frames.FRAME_HEADER.size)
        if len(head) < frames.FRAME_HEADER.size:
            code = self._process.wait()
            raise ModelMissing(f"the embedder's process ended with code {code} while it loaded its model; see the log")
        content = self._read_blocking(frames.decode_header(head).length)
        if frames.decode_header(head).kind == frames.ERROR:
            raise ModelMissing(content.decode(errors="replace"))
        return Fingerprint.model_validate_json(content)

    async def loaded(self) -> Fingerprint:
        """As `hello`, in a thread of its own, as it may take minutes. Cancellation kills the process."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="embedder-hello")
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, self.hello)
        except asyncio.CancelledError:
            self._process.kill()  # Ends the thread's read before `end` closes the pipe under it.
            thread.shutdown()
            raise
        finally:
            thread.shutdown(wait=False)

    async def ask(self, kind: int, prefix: str, text: str) -> Encoded:
        """Embed one text. Raises Unavailable if the process ends first, RuntimeError if the model fails on the text."""
        async with self._opening:
            if self._writing is None and not self.ended:
                await self._open()
        if self.ended or self._writing is None:
            raise Unavailable("the embedder's process has ended and is being restarted")
        number = next(self._numbers) % 2**32
        answer: asyncio.Future[Encoded] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writing.write(frames.encode_frame(number, kind, frames.encode_request(prefix, text)))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def end(self) -> None:
        """Close the child's input, which ends it; kill it if that takes too long."""
        self.ended = True
        for pipe in (self._process.stdin, self._process.stdout) if self._writing is None else ():
            assert pipe is not None
            pipe.close()
        if self._writing is not None:
            self._writing.close()
        try:
            await asyncio.to_thread(self._process.wait, CHILD_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if self._reading is not None:
            await self._reading

    def _read_blocking(self, length: int) -> bytes:
        assert self._process.stdout is not None
        content = b""
        while len(content) < length and (more := self._process.stdout.read(length - len(content))):
            content += more
        return content

    async def _open(self) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**24)
        source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout)
        self._writing, _ = await loop.connect_write_pipe(asyncio.Protocol, self._process.stdin)
        self._reading = asyncio.create_task(self._read(reader, source))

    async def _read(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        """Resolve the future of each response; fail all open ones when the process ends."""
        try:
            while True:
                number, kind, length = frames.decode_header(await reader.readexactly(frames.FRAME_HEADER.size))
                self._resolve(number, kind, await reader.readexactly(length))
        except asyncio.IncompleteReadError:
            self.ended = True
            transport.close()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Unavailable("the embedder's process ended before it answered"))

    def _resolve(self, number: int, kind: int, content: bytes) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if kind == frames.ERROR:
            answer.set_exception(RuntimeError(content.decode(errors="replace")))
        else:
            answer.set_result(frames.decode_vectors(content))


CHILD_COMMAND = (sys.executable, "-m", "streams.adapters.embedding.process.child")

log = structlog.get_logger()


class ProcessEmbedder:
    """Implements `agents.ports.embedder.Embedder`; a prefix that is None is the embedder's own."""

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
        return await self._ask(frames.PASSAGE, self._passage_prefix if prefix is None else prefix, text)

    async def query(self, text: str, prefix: str | None = None) -> Encoded:
        return await self._ask(frames.QUERY, self._query_prefix if prefix is None else prefix, text)

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
