"""The file reader port over processes that only read: bounded in number, reused, replaced after failures."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import structlog

from agents.ports.models import LanguageModel
from schemas.state.files import FileText, ReadFailed, ReadFailure, Segment
from streams.adapters.files.frames import FAILED, PICTURE, PIECE, PREFIX, TEXT, decode_piece
from streams.adapters.files.media_models import MediaModels
from streams.adapters.files.reading import expected_kind
from streams.adapters.files.text_builder import MediaPiece, cut_segments, paragraphs

PROJECT_ROOT = Path(__file__).parents[3]

COMMAND = (sys.executable, "-m", "streams.adapters.files.child")
"""Run in the project's folder: the project is not an installed package."""

KEPT_VARIABLES = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "SYSTEMROOT", "GLIBC_TUNABLES",
)  # fmt: skip
"""The others may hold secrets, which a file's reader must not have."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1", "MALLOC_ARENA_MAX": "2",
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1",
}  # fmt: skip

SILENCE_S = 60.0
"""How long a process may say nothing: a page takes seconds, a loop for ever."""

MAX_FILES = 500
"""Maximum files read by one process, which limits the leaks of libraries."""

RETIRED_SHARE = 0.6
"""Share of its memory limit above which a process reads no further file."""

SPARE_BYTES = 64 << 20
"""Of the largest frame, in addition to the text: segments, a piece of sound."""

MAX_NAME = 255
"""Characters of a name, of which the end tells the kind, and of a media type."""

CODES: dict[str, ReadFailure] = {code: code for code in get_args(ReadFailure)}

TOO_SLOW = "Reading the file takes longer than it may."

log = structlog.get_logger()

ReadPiece = Callable[[MediaPiece], Awaitable[None]]
"""Has a model read a piece."""


class ReaderProcess:
    """One process; reads one file at a time. Nothing may be called after it is killed."""

    def __init__(self, process: asyncio.subprocess.Process, requests: socket.socket, memory_bytes: int) -> None:
        self._process = process
        self._requests = requests
        self._memory_bytes = memory_bytes
        self._files = 0
        self.is_spent = False
        """True if it must read no further file."""

    @classmethod
    async def start(cls, memory_bytes: int) -> "ReaderProcess":
        """Start a process. Raises OSError."""
        # Of stream sockets, macOS has no other; one message at a time is under way.
        ours, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *COMMAND,
                    str(memory_bytes),
                    stdin=theirs.fileno(),
                    stdout=asyncio.subprocess.PIPE,
                    # Libraries print what a file says.
                    stderr=asyncio.subprocess.DEVNULL,
                    cwd=PROJECT_ROOT,
                    env=kept | ENVIRONMENT,
                    # What is typed at the worker's terminal must not reach it.
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        return cls(process, ours, memory_bytes)

    async def read(self, path: Path, request: dict[str, Any], read_piece: ReadPiece) -> FileText:
        """Read a file. Raises `ReadFailed`; also if the process dies or takes too long: then it is to be killed."""
        answer, _ = await self._ask(path, request, read_piece)
        if answer is None:
            raise await self._death()
        return answer

    async def draw(self, path: Path, request: dict[str, Any]) -> bytes:
        """Draw the `page` of a PDF as WebP. Raises as `read` does."""

        async def refuse(_: MediaPiece) -> None:
            raise ReadFailed("unreadable", "A page has no pieces.")

        return (await self._ask(path, request, refuse))[1]

    async def _ask(self, path: Path, request: dict[str, Any], read_piece: ReadPiece) -> tuple[FileText | None, bytes]:
        """Return the text of a file, or the picture of a page."""
        self._files += 1
        remaining = float(request["seconds"])
        max_bytes = 6 * request["characters"] + SPARE_BYTES
        clock = asyncio.get_running_loop().time
        self.is_spent = True  # until it has answered
        try:
            with path.open("rb") as file:
                socket.send_fds(self._requests, [json.dumps(request).encode()], [file.fileno()])
            while True:
                began = clock()
                async with asyncio.timeout(min(SILENCE_S, remaining)):
                    kind, header, content = await self._frame(max_bytes)
                # The time that a model takes is not the file's.
                remaining -= clock() - began
                if kind == PIECE:
                    await read_piece(decode_piece(header, content))
                elif kind in (TEXT, PICTURE, FAILED):
                    answer = None if kind == PICTURE else _answer(kind, header)
                    self.is_spent = (
                        self._files >= MAX_FILES or header["peak_bytes"] > RETIRED_SHARE * self._memory_bytes
                    )
                    break
        except FileNotFoundError:
            raise ReadFailed("unavailable", "The file's bytes are not there.") from None
        except TimeoutError as problem:
            raise ReadFailed("too_large", TOO_SLOW) from problem
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, KeyError, TypeError) as problem:
            raise await self._death() from problem
        if not isinstance(answer, ReadFailed):
            return answer, content
        if "problem" in header:
            log.info("a file is not read", problem=header["problem"])
        raise answer

    @property
    def is_alive(self) -> bool:
        """True unless it has ended."""
        return self._process.returncode is None

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        # Its end is told only after its output, of which the pipe may be full.
        await self._process.communicate()
        self._requests.close()

    async def _frame(self, max_bytes: int) -> tuple[bytes, dict[str, Any], bytes]:
        assert self._process.stdout is not None
        prefix = await self._process.stdout.readexactly(PREFIX.size)
        kind, header_bytes, content_bytes = PREFIX.unpack(prefix)
        if header_bytes + content_bytes > max_bytes:
            raise ValueError("a frame of a reader is too large")
        header = json.loads(await self._process.stdout.readexactly(header_bytes))
        return kind, header, await self._process.stdout.readexactly(content_bytes)

    async def _death(self) -> ReadFailed:
        # Its output has ended or is nonsense: it ends by itself, or by our hand.
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._process.wait()
        code = self._process.returncode
        log.warning("a process that read a file has died", code=code)
        if code == -signal.SIGXCPU:
            return ReadFailed("too_large", TOO_SLOW)
        # Killed by the system, for want of memory, or never begun: it is not for the file.
        if code in (0, 1, -signal.SIGKILL):
            return ReadFailed("unavailable", "The process that read the file was ended; try again.")
        return ReadFailed("unreadable", "The file ended the process that read it.")


IDLE_S = 60.0
"""A process without a file for so long is ended: it has up to 500 MB."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one file may take: processes in all, characters of its text, seconds, and bytes of a process's memory."""

    processes: int = 2
    characters: int = 2_000_000
    seconds: float = 600.0
    memory_bytes: int = 1500 << 20


class ProcessFileReader:
    """Implements `agents.ports.files.FileReader`."""

    def __init__(self, limits: ReadLimits, language: LanguageModel | None = None) -> None:
        """Take the limits, and the models of the roles `caption` and `transcribe`. Nothing is started yet."""
        self._limits = limits
        self._language = language
        self._slots = asyncio.Semaphore(limits.processes)
        # Documents are read while a model listens to hours of sound.
        self._media_slots = asyncio.Semaphore(max(1, limits.processes - 1))
        self._idle: dict[ReaderProcess, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        """Read a file; waits while as many are read as there may be processes."""
        models = MediaModels(self._language)
        request = {
            # A turn's own may be longer than a request.
            "media_type": media_type[:MAX_NAME],
            "name": name[-MAX_NAME:],
            "roles": sorted(models.roles),
            "characters": self._limits.characters,
            "seconds": self._limits.seconds,
        }
        is_media = expected_kind(media_type, name) in {"image", "sound"}
        async with self._media_slots if is_media else nullcontext(), self._process() as process:
            read = await process.read(path, request, models.read)
        read = models.complete(read)
        if len(read.text) > self._limits.characters:
            raise ReadFailed("too_large", f"The file has more than {self._limits.characters:,} characters of text.")
        return read

    async def draw(self, path: Path, page: int) -> bytes:
        """Draw a page of a PDF, counted from 1, as WebP; waits as `read` does. Raises ReadFailed."""
        request = {"page": page, "characters": 0, "seconds": self._limits.seconds}
        async with self._process() as process:
            return await process.draw(path, request)

    def segments_of(self, text: str) -> tuple[Segment, ...]:
        return cut_segments(text, paragraphs(text))

    async def close(self) -> None:
        """End the processes; no call may follow."""
        for process in list(self._idle):
            self._end(process)
        await asyncio.gather(*self._ending)

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[ReaderProcess]:
        """Lend a process for one file; one that failed is ended."""
        async with self._slots:
            process = await self._taken()
            try:
                yield process
            finally:
                if process.is_spent:
                    await process.end()
                else:
                    self._idle[process] = asyncio.get_running_loop().call_later(IDLE_S, self._end, process)

    async def _taken(self) -> ReaderProcess:
        while self._idle:
            process, timer = self._idle.popitem()
            timer.cancel()
            if process.is_alive:
                return process
            await process.end()
        try:
            return await ReaderProcess.start(self._limits.memory_bytes)
        except OSError as problem:
            raise ReadFailed("unavailable", "No process can be started to read the file.") from problem

    def _end(self, process: ReaderProcess) -> None:
        if (timer := self._idle.pop(process, None)) is not None:
            timer.cancel()
            ending = asyncio.ensure_future(process.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


def _answer(kind: bytes, header: Mapping[str, Any]) -> FileText | ReadFailed:
    """Parse the last frame. Raises KeyError, TypeError for one that our readers did not write."""
    if kind == FAILED:
        return ReadFailed(CODES[header["code"]], str(header["error"]))
    segments = tuple(Segment(*segment[:5]) for segment in header["segments"])
    return FileText(header["text"], header["reader"], segments, header["pages"], header["seconds"])
