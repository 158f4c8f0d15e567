"""The file reader port over processes that only read."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agents.ports.models import LanguageModel
from schemas.models.files import FileText, ReadFailed
from streams.adapters.files.segments import cut_segments, paragraphs


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one file may take: processes in all, characters of its text, seconds, and bytes of a process's memory."""

    processes: int = 2
    characters: int = 2_000_000
    seconds: float = 300.0
    memory_bytes: int = 1 << 30


class ProcessFileReader:
    """Implements `agents.ports.files.FileReader`."""

    def __init__(self, limits: ReadLimits, language: LanguageModel | None = None) -> None:
        """Take the limits, and the models of the roles `caption` and `transcribe`. Nothing is started yet."""
        self._limits = limits
        self._language = language

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        """Read a file."""
        if not (media_type.startswith("text/") or name.endswith((".txt", ".md"))):
            raise ReadFailed("no_reader", f"There is no reader of {media_type}.")
        content = await asyncio.to_thread(path.read_bytes)
        text = content.decode("utf-8", "replace")
        if len(text) > self._limits.characters:
            raise ReadFailed("too_large", f"The file has more than {self._limits.characters:,} characters of text.")
        return FileText(text, "text", cut_segments(text, paragraphs(text)))

    async def close(self) -> None:
        """End the processes; no call may follow."""
