"""The file reader port over processes that only read: bounded in number, reused, replaced after failures."""

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from agents.ports.models import LanguageModel
from schemas.models.files import FileText, ReadFailed
from streams.adapters.files.kinds import expected_kind
from streams.adapters.files.media_models import MediaModels
from streams.adapters.files.reader_process import ReaderProcess

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
            "path": str(Path.cwd() / path),
            "media_type": media_type,
            "name": name,
            "roles": sorted(models.roles),
            "characters": self._limits.characters,
            "seconds": self._limits.seconds,
        }
        is_media = expected_kind(media_type, name) in {"image", "sound"}
        async with self._media_slots if is_media else nullcontext(), self._slots:
            process = await self._taken()
            try:
                read = await process.read(request, models.read)
            finally:
                if process.is_spent:
                    await process.end()
                else:
                    self._idle[process] = asyncio.get_running_loop().call_later(IDLE_S, self._end, process)
        read = models.complete(read)
        if len(read.text) > self._limits.characters:
            raise ReadFailed("too_large", f"The file has more than {self._limits.characters:,} characters of text.")
        return read

    async def close(self) -> None:
        """End the processes; no call may follow."""
        for process in list(self._idle):
            self._end(process)
        await asyncio.gather(*self._ending)

    async def _taken(self) -> ReaderProcess:
        while self._idle:
            process, timer = self._idle.popitem()
            timer.cancel()
            if process.is_alive:
                return process
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
