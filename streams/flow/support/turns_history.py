"""The log of turns and its archive, as `ArchiveTurns` moves what is old from one to the other."""

from collections.abc import Sequence
from typing import Protocol

from schemas.messages.records import Record


class TurnsHistory(Protocol):
    """The topics `turns` and `archive`, by partition. Calls raise Unavailable while Kafka does not answer."""

    async def handled(self, partition: int) -> int:
        """Return the offset before which every turn is handled and committed."""

    async def begin(self, partition: int) -> int:
        """Return the offset of the first turn that the log has."""

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        """Return the offset of the first turn that was written at a time or later; None if there is none."""

    async def read(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return some turns from an offset on, and the offset to read next; none sometimes before the end, too."""

    async def read_archive(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return some records of the archive from an offset on, and the offset to read next."""

    async def archive_end(self, partition: int) -> int:
        """Return the offset after the last record of the archive."""

    async def archived(self, partition: int) -> int:
        """Return the offset before which every turn is archived, as the archive says; 0 for an empty one."""

    async def delete_before(self, partition: int, offset: int) -> None:
        """Delete the turns before an offset from the log, for good."""
