"""The worker's end of the pipes to an embedder's process.

Enters: texts with their prefixes. Leaves: their vectors. Guaranteed: calls that wait when the process ends raise
`Unavailable`; the process has ended, and its pipes are closed, when `end` returns.
"""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.process.frames import (
    ERROR,
    FRAME_HEADER,
    decode_header,
    decode_vectors,
    encode_frame,
    encode_request,
)

PROJECT_ROOT = Path(__file__).parents[4]
"""The child's working directory: the project is not an installed package."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Passages run in parallel on all cores, so one matrix product must not use more than one."""

CHILD_STOP_TIMEOUT_S = 5.0
"""How long a child may take to end after its input is closed."""


class EmbedderChild:
    """One run of the embedder's process."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the process."""
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
        head = self._read_blocking(FRAME_HEADER.size)
        if len(head) < FRAME_HEADER.size:
            code = self._process.wait()
            raise ModelMissing(f"the embedder's process ended with code {code} while it loaded its model; see the log")
        content = self._read_blocking(decode_header(head).length)
        if decode_header(head).kind == ERROR:
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
        self._writing.write(encode_frame(number, kind, encode_request(prefix, text)))
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
        """Return `length` bytes, or fewer at the end of the output."""
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
                number, kind, length = decode_header(await reader.readexactly(FRAME_HEADER.size))
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
        if kind == ERROR:
            answer.set_exception(RuntimeError(content.decode(errors="replace")))
        else:
            answer.set_result(decode_vectors(content))
