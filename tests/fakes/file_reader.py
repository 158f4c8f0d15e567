"""A reader of files in this process: what the real one's processes read, at once and without a start."""

import asyncio
from pathlib import Path

from schemas.state.files import FileText, ReadFailed, Segment
from streams.adapters.files.process_reader import ReadLimits
from streams.adapters.files.reading import read_file
from streams.adapters.files.text_builder import MediaPiece, TextBuilder, cut_segments, paragraphs


def refuse_piece(piece: MediaPiece) -> None:
    raise ReadFailed("unreadable", f"no model reads {piece}")


class InProcessFileReader:
    """Implements `agents.ports.files.FileReader` for documents; a hostile one costs the test run."""

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        return await asyncio.to_thread(self._read, path, media_type, name)

    def segments_of(self, text: str) -> tuple[Segment, ...]:
        return cut_segments(text, paragraphs(text))

    async def close(self) -> None:
        """End nothing."""

    def _read(self, path: Path, media_type: str, name: str) -> FileText:
        text = TextBuilder(ReadLimits().characters, (), lambda: None, refuse_piece)
        try:
            with path.open("rb") as file:
                return read_file(file, media_type, name, text)
        except FileNotFoundError:
            raise ReadFailed("unavailable", "The file's bytes are not there.") from None
        except (MemoryError, RecursionError, ValueError) as problem:
            raise ReadFailed("unreadable", "The file is broken.") from problem
