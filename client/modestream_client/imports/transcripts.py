"""Transcripts of coding agents, files that grow: each call reads on where the last one stopped."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, NamedTuple, cast

from modestream_client.imports import ExportFormat, NotOfFormat, read_export
from modestream_client.imports.reading import Json, MoreProblems, Problem
from modestream_client.outbox import Transcript

TAIL_BYTES = 4096
"""Bytes before the end that was read: a file with others there was written again, and is read from its beginning."""

MOMENT = timedelta(seconds=1)
"""Messages of one time are read with others of the same time up to a second apart, and so have consecutive times."""


class _Lines:
    """The lines of a file from a position, after its first line if requested."""

    def __init__(self, file: IO[bytes], first: bytes) -> None:
        self._file, self._first = file, first
        self.starts: list[int] = []
        """Offsets of the lines read so far."""
        self.is_whole = True
        """False while the last line has no end: it is being written."""

    def readline(self, size: int = -1) -> bytes:
        at = self._file.tell()
        piece, self._first = self._first or self._file.readline(size), b""
        if piece and self.is_whole:
            self.starts.append(at)
        if piece:
            # A line that is longer than `size` is read in pieces.
            self.is_whole = piece.endswith(b"\n")
        return piece


class Growth(NamedTuple):
    """What a transcript has beyond its former state."""

    seen: Transcript
    turns: list[Json]
    """Messages as turns without scope."""
    read_from: int = 0
    """Offset from which it was read; `left_out` is complete from there on."""
    left_out: Mapping[int, str] = {}
    """Lines that could not become turns, by offset, with the reason."""


def read_on(path: Path, before: Transcript) -> Growth:
    """Return the messages of a transcript beyond `before`, and its new state.

    Ids and times are the same as in an import of the whole file. A rewritten file is read from its beginning: known
    messages are recognised by their ids. Raises OSError.
    """
    turns: list[Json] = []
    left_out: dict[int, str] = {}
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
                if isinstance(entry, MoreProblems):
                    # A result names 100 problems: further ones are told once those are gone.
                    continue
                at = lines.starts[cast(int, entry.place) - 1]
                if isinstance(entry, Problem):
                    if lines.is_whole or at != lines.starts[-1]:
                        left_out[at] = entry.message
                    continue
                if not _is_json(entry.turn):
                    left_out[at] = "the message has a number that JSON can't have"
                    continue
                said_at = datetime.fromisoformat(entry.turn["occurred_at"])
                # Ids and times of messages depend on those before them that have the same time: they are read again.
                if moment is None or not moment <= said_at < moment + MOMENT:
                    moment, start, passed = said_at, at, number
                number += 1
                if number > before.messages:
                    turns.append(entry.turn)
        except NotOfFormat as problem:
            # While the first line is being written nothing was said yet.
            broken = {lines.starts[0]: str(problem)} if lines.is_whole and lines.starts else {}
            return Growth(before, [], before.start, broken)
        end = file.tell()
        seen = Transcript(before.format, number - passed, end, start, _tail(file, end))
        return Growth(seen, turns, before.start, left_out)


def _is_json(turn: Json) -> bool:
    try:
        json.dumps(turn, allow_nan=False)
    except ValueError:
        return False
    return True


def _tail(file: IO[bytes], end: int) -> str:
    """Return a digest of the bytes before an offset."""
    file.seek(max(0, end - TAIL_BYTES))
    return hashlib.sha256(file.read(min(end, TAIL_BYTES))).hexdigest() if end else ""
