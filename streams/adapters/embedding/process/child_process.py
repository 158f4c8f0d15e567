"""The worker's end of the pipes to an embedder's process.

Enters: texts with their prefixes. Leaves: their vectors. Guaranteed: whoever waits when the process ends is told
`Unavailable`; a process that is told to end has ended, with its pipes, when `end` returns.
"""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from schemas.failures import ModelMissing, Unavailable
from schemas.modes import Fingerprint
from schemas.vectors import Encoded
from streams.adapters.embedding.process.frames import (
    ERROR,
    FRAME_HEADER,
    decode_header,
    decode_vectors,
    encode_frame,
    encode_request,
)

PROJECT_ROOT = Path(__file__).parents[4]
"""Where the project lies: it is not installed, so the child is started there."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""As many passages run at once as there are cores: a product of matrices must not take all of them for itself."""

CHILD_STOP_TIMEOUT_S = 5.0
"""How long a child may take to end once its input has."""


class EmbedderChild:
    """One run of the embedder's process."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it."""
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
        """Wait for its first frame. Blocks; to be called once, before anything is asked.

        Raises ModelMissing, with the reason, where it could not load its model.
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
        """As `hello`, in a thread of its own, as it may take minutes. Cancelling it kills the process."""
        waiting = ThreadPoolExecutor(1, thread_name_prefix="embedder-hello")
        try:
            return await asyncio.get_running_loop().run_in_executor(waiting, self.hello)
        except asyncio.CancelledError:
            self._process.kill()  # Ends the thread's read, before somebody closes the pipe under it.
            waiting.shutdown()
            raise
        finally:
            waiting.shutdown(wait=False)

    async def ask(self, kind: int, prefix: str, text: str) -> Encoded:
        """Have one text embedded. Unavailable when the process ends first, RuntimeError where the model can't."""
        async with self._opening:
            if self._writing is None and not self.ended:
                await self._open()
        if self.ended or self._writing is None:
            raise Unavailable("the embedder's process has ended; it is being started again")
        number = next(self._numbers) % 2**32
        answer: asyncio.Future[Encoded] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writing.write(encode_frame(number, kind, encode_request(prefix, text)))
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
            await asyncio.to_thread(self._process.wait, CHILD_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if self._reading is not None:
            await self._reading

    def _read_blocking(self, length: int) -> bytes:
        """So many bytes, or fewer where the output ends."""
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
        """Hand each answer to whoever waits for it; when the process ends, tell all of them."""
        try:
            while True:
                number, kind, length = decode_header(await reader.readexactly(FRAME_HEADER.size))
                self._hand_over(number, kind, await reader.readexactly(length))
        except asyncio.IncompleteReadError:
            self.ended = True
            transport.close()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Unavailable("the embedder's process ended while it had this text"))

    def _hand_over(self, number: int, kind: int, content: bytes) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if kind == ERROR:
            answer.set_exception(RuntimeError(content.decode(errors="replace")))
        else:
            answer.set_result(decode_vectors(content))
