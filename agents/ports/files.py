"""Reading files: bytes on a disk in, text with places out."""

from pathlib import Path
from typing import Protocol

from schemas.models.files import FileText


class FileReader(Protocol):
    """Reads files of any kind. Calls may be concurrent; only some are read at once, the others wait."""

    async def read(self, path: Path, *, media_type: str, name: str) -> FileText:
        """Return the text of a file; an empty file has none. The media type may be wrong, and the name anything.

        Raises `ReadFailed`. A file that ends its reader, or takes too long or too much, costs only itself.
        """

    async def close(self) -> None:
        """End the processes; no call may follow."""
