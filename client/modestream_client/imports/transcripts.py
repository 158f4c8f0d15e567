"""Transcripts of coding agents, files that grow: each call reads on where the last one stopped."""

import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, cast

from modestream_client.imports import ExportFormat, Message, NotOfFormat, read_export
from modestream_client.imports.reading import Json
from modestream_client.outbox import Transcript

TAIL_BYTES = 4096
"""Bytes before the end that was read: a file with others there was written again, and is read from its beginning."""

MOMENT = timedelta(seconds=1)
"""Messages of one time are read with others of the same time up to a second apart, and so have consecutive times."""


class _Lines:
    """The lines of a file from a position, after its first line if requested."""

    def __init__(self, file: IO[bytes], first: bytes) -> None:
        self._file, self._first = file, first
        self.line_start = 0
        """Offset of the last line."""

    def readline(self, size: int = -1) -> bytes:
        if first := self._first:
            self._first = b""
            return first
        self.line_start = self._file.tell()
        return self._file.readline(size)


def read_on(path: Path, before: Transcript) -> tuple[Transcript, list[Json]]:
    """Return the transcript's new state, and its messages beyond `before` as turns without scope.

    Ids and times are the same as in an import of the whole file. A rewritten file is read from its beginning: known
    messages are recognised by their ids. Raises OSError.
    """
    turns: list[Json] = []
    moment: datetime | None = None
    number = passed = 0
    with path.open("rb") as file:
        if _tail(file, before.bytes) != before.tail:
            before = Transcript(before.format)
        file.seek(0)
        # Codex names the session in its first line alone.
        first = file.readline() if before.start and before.format == "codex" else b""
        file.seek(start := before.start)
        lines = _Lines(file, first)
        try:
            for entry in read_export(cast(IO[bytes], lines), cast(ExportFormat, before.format)):
                if not isinstance(entry, Message):
                    continue
                at = datetime.fromisoformat(entry.turn["occurred_at"])
                # Ids and times of messages depend on those before them that have the same time: they are read again.
                if moment is None or not moment <= at < moment + MOMENT:
                    moment, start, passed = at, lines.line_start, number
                number += 1
                if number > before.messages:
                    turns.append(entry.turn)
        except NotOfFormat:
            # Nothing was said yet.
            return before, []
        end = file.tell()
        return Transcript(before.format, number - passed, end, start, _tail(file, end)), turns


def _tail(file: IO[bytes], end: int) -> str:
    """Return a digest of the bytes before an offset."""
    file.seek(max(0, end - TAIL_BYTES))
    return hashlib.sha256(file.read(min(end, TAIL_BYTES))).hexdigest() if end else ""
