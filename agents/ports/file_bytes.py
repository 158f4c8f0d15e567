"""The bytes of files, and where they come from."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple, Protocol


class StoredBytes(NamedTuple):
    """Bytes as they lie; `modified` is by the store's clock."""

    key: str
    size: int
    modified: datetime


class FileBytes(Protocol):
    """Bytes by key (`schemas.state.files`). Every method raises Unavailable while the store can't be had."""

    async def put(self, key: str, content: IO[bytes]) -> None:
        """Store what a file object has, wholly or not at all; replaces what was there."""

    async def find(self, prefix: str) -> list[StoredBytes]:
        """Return what lies under keys with this beginning, which ends in a slash."""

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Return the bytes in pieces. Raises FileNotFoundError before the first where there are none."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove bytes; what is not there is no error."""


class FileSource(Protocol):
    """Gets the bytes of a resource."""

    async def fetch(self, uri: str, boundary: str, path: Path) -> None:
        """Write the bytes of a URI, as a user has them, to a path. Raises ReadFailed: `unavailable`, `too_large`."""
