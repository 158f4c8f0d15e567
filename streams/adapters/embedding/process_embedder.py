"""The embedder port over a process of its own.

A model in this process would fight the event loop for the interpreter: each text cost the loop several times what
it takes to hand it over a pipe. The child ends with this process. One that dies is started again; what it had in
hand is `Unavailable`, and comes again.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

import structlog

from schemas.failures import Unavailable
from schemas.modes import Fingerprint
from schemas.vectors import Encoded
from streams.adapters.embedding.frames import ERROR, HEADER, PASSAGE, QUERY, frame, header, unpacked
from streams.adapters.embedding.local_model import LocalModel
from streams.adapters.embedding.minilm_export import Precision

CHILD = (sys.executable, "-m", "streams.adapters.embedding.child")

PROJECT = Path(__file__).parents[3]
"""Where the project lies: it is not installed, so the child is started there."""

END_SECONDS = 5.0
"""How long a child may take to end once its input has."""

log = structlog.get_logger()


class ProcessEmbedder:
    """Implements `agents.ports.Embedder`."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the child; `fingerprint` waits for its model."""
        self._command = command
        self._child = Child(command)
        self._fingerprint: Fingerprint | None = None
        self._restarting: asyncio.Task[None] | None = None

    @classmethod
    def start(
        cls, local: LocalModel, threads_at_once: int = 0, *, export: Precision | None = None, tokens: bool = True
    ) -> Self:
        """Start with a model; 0 threads stands for as many as this process may use cores.

        `export` makes the model first, from MiniLM's published weights; without `tokens` no token vectors are sent.
        """
        threads = threads_at_once or len(os.sched_getaffinity(0))
        model = asdict(local) | {"directory": str(local.directory.absolute())}
        options = {"model": model, "threads": threads, "export": export, "tokens": tokens}
        return cls((*CHILD, json.dumps(options)))

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie. Blocks until the model is loaded; RuntimeError where it can't be."""
        if self._fingerprint is None:
            self._fingerprint = self._child.hello()
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept."""
        return await self._ask(PASSAGE, text)

    async def query(self, text: str) -> Encoded:
        """Embed a question, ahead of any passages that are waiting."""
        return await self._ask(QUERY, text)

    async def close(self) -> None:
        """End the child; nothing may be called afterwards."""
        if self._restarting is not None:
            self._restarting.cancel()
        await self._child.end()

    async def _ask(self, kind: int, text: str) -> Encoded:
        _ = self.fingerprint
        if self._child.ended and (self._restarting is None or self._restarting.done()):
            log.warning("the embedder's process ended and is started again")
            self._restarting = asyncio.create_task(self._restart())
        return await self._child.ask(kind, text)

    async def _restart(self) -> None:
        await self._child.end()
        child = await asyncio.to_thread(Child, self._command)
        await asyncio.to_thread(child.hello)
        self._child = child


class Child:
    """One run of the embedder's process."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it."""
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=PROJECT
        )
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Encoded]] = {}
        self._writing: asyncio.WriteTransport | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self.ended = False

    async def ask(self, kind: int, text: str) -> Encoded:
        """Have one text embedded. Unavailable when the process ends first, RuntimeError where the model can't."""
        async with self._opening:
            if self._writing is None and not self.ended:
                await self._open()
        if self.ended or self._writing is None:
            raise Unavailable("the embedder's process has ended; it is being started again")
        number = next(self._numbers) % 2**32
        answer: asyncio.Future[Encoded] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writing.write(frame(number, kind, text.encode("utf-8", "surrogatepass")))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def end(self) -> None:
        """Close its input, which ends it; kill it where that does not help."""
        self.ended = True
        for pipe in (self._process.stdin, self._process.stdout) if self._writing is None else ():
            assert pipe is not None
            pipe.close()
        if self._writing is not None:
            self._writing.close()
        try:
            await asyncio.to_thread(self._process.wait, END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if self._reading is not None:
            await self._reading

    def hello(self) -> Fingerprint:
        """Wait for its first frame. Blocks; to be called once, before anything is asked."""
        assert self._process.stdout is not None
        head = self._process.stdout.read(HEADER.size)
        if not head or len(head) < HEADER.size:
            code = self._process.wait()
            raise RuntimeError(f"the embedder's process ended with code {code}; its reason stands above in the log")
        length, content = header(head).length, b""
        while len(content) < length:
            content += self._process.stdout.read(length - len(content)) or b""
        return Fingerprint.model_validate_json(content)

    async def _open(self) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**24)
        source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout)
        self._writing, _ = await loop.connect_write_pipe(asyncio.Protocol, self._process.stdin)
        self._reading = asyncio.create_task(self._read(reader, source))

    async def _read(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        """Hand each answer to whoever waits for it; when the process ends, tell all of them."""
        try:
            while True:
                number, kind, length = header(await reader.readexactly(HEADER.size))
                content = await reader.readexactly(length)
                answer = self._waiting.get(number)
                if answer is None or answer.done():
                    continue
                if kind == ERROR:
                    answer.set_exception(RuntimeError(content.decode(errors="replace")))
                else:
                    answer.set_result(unpacked(content))
        except asyncio.IncompleteReadError:
            self.ended = True
            transport.close()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Unavailable("the embedder's process ended while it had this text"))
