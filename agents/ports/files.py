"""The bytes of files, and where they come from."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from schemas.state.files import FileText, Segment


class FileReader(Protocol):
    """Reads files of any kind. Calls may be concurrent; a limited number run at a time."""

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        """Return the text of a file, empty for an empty file. The media type may be wrong; the name may be anything.

        Raises `ReadFailed`. A file that ends its reader, or takes too long or too much, costs only itself.
        """

    def segments_of(self, text: str) -> tuple[Segment, ...]:
        """Return the natural parts of a text that has none: its paragraphs, short ones joined, long ones cut."""

    async def close(self) -> None:
        """End the processes; no call may follow."""


class StoredBytes(NamedTuple):
    """Bytes as they lie; `modified` is by the store's clock."""

    key: str
    size: int
    modified: datetime


class FileBytes(Protocol):
    """Bytes by key (`schemas.state.files`). Every method raises Unavailable while the store can't be had."""

    async def put(self, key: str, content: IO[bytes]) -> None:
        """Store the content of a file object atomically; replaces an existing file."""

    async def find(self, prefix: str) -> list[StoredBytes]:
        """Return the files whose keys start with this prefix, which ends in a slash."""

    async def unfinished(self, prefix: str) -> list[StoredBytes]:
        """Return what is being written, or was left by a killed writer; `find` has none of it, `remove` removes it."""

    def read(self, *keys: str) -> AsyncIterator[bytes]:
        """Yield the bytes under the first of these keys that has any, in pieces.

        Raises FileNotFoundError before the first piece if none has.
        """

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove a file; a missing one is no error."""


class FileSource(Protocol):
    async def fetch(self, uri: str, boundary: str, path: Path) -> None:
        """Write the bytes of a URI, as a user has them, to a path. Raises ReadFailed: `unavailable`, `too_large`."""
