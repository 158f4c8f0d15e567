"""The logs that are a deployment's source of truth, with ports for reading and writing them.

Everything else is derived from them: tables, lexical index, vectors, events.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol

from schemas.messages.records import Headers, Record

Log = Literal["turns", "commands", "consolidate"]

LOGS: tuple[Log, ...] = ("turns", "commands", "consolidate")
"""The topics by name without prefix, in the order in which records of the same time are copied."""

LogPartition = tuple[Log, int]
"""A log and a partition."""

Positions = Mapping[LogPartition, int]
"""The next offset to read, or the end, by place."""

CopiedPlace = tuple[Log, int, int]
"""Log, partition and offset of a record in the source deployment."""


class CopiedRecord(NamedTuple):
    """A copy in the target, by its origin and the digest of its content.

    Any client of the target may write the header of a copy: a record that claims an origin but has other content does
    not prevent the copy of that origin.
    """

    origin: CopiedPlace
    digest: bytes


def digest_of(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """Return the digest of a record."""
    return sha256(b"%d %d " % (timestamp_ms, len(key)) + key + value).digest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of the logs so far: ids of forgotten memories, and of the existing distilled memories.

    `consolidated` has the offsets of the triggers up to which the latter are complete, by partition.
    """

    forgotten: frozenset[str] = frozenset()
    distilled: frozenset[str] = frozenset()
    consolidated: Mapping[int, int] = field(default_factory=dict)


class LogSource(Protocol):
    """Readable logs: of a deployment, or of a backup. Calls raise Unavailable while they can't be read."""

    partitions: int

    async def ends(self) -> Positions:
        """Return the offsets after the last records, of all places."""

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        """Return at most `most` records from an offset on, and the offset to read next.

        Empty at the end, and sometimes before it; records removed by retention are missing.
        """

    async def outcome(self) -> Outcome:
        """Return the outcome of the logs."""

    async def revisions(self) -> list[Record]:
        """Return the revisions of the pipelines, in their order: each applies to the records after it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A record to be written: its boundary is its key, and its scope has all fields of the target's model."""

    log: Log
    scope: Mapping[str, str]
    boundary: str
    value: bytes
    headers: Headers
    timestamp_ms: int
    origin: CopiedPlace
    is_forgotten: bool = False
    """True for a forgotten turn: its text is left out."""

    @property
    def copied(self) -> CopiedRecord:
        """Its value in the target."""
        return CopiedRecord(self.origin, digest_of(self.boundary.encode(), self.value, self.timestamp_ms))


class LogTarget(Protocol):
    """A writable deployment. Calls wait for its worker without a limit."""

    partitions: int

    async def ends(self) -> Positions:
        """Return the offsets after the last records, of all places."""

    async def copied_since(self, since: Positions, /) -> frozenset[CopiedRecord]:
        """Return the records that were copied to places at or after these offsets; default 0."""

    async def write(self, entry: Entry) -> int:
        """Write a record and return its offset when Kafka has it. Raises MemoryServiceError if it can't be taken."""

    async def carry_out(self, entry: Entry, /) -> str | None:
        """Write a command or trigger and wait until it has taken effect; return why its content was refused, if so.

        The source has refused it as well then. Raises MemoryServiceError if the target can't take it, or can't execute
        it now.
        """

    async def wait_applied(self, scope: Mapping[str, str], offset: int) -> None:
        """Wait until the turns of this scope's boundary up to an offset are applied."""

    async def wait_embedded(self, scope: Mapping[str, str]) -> None:
        """Wait until the vectors of this scope's boundary are ready, except those of missing models."""

    async def keep_distilled(self, scope: Mapping[str, str], kept: Collection[str], /) -> int:
        """Forget all distilled memories of a scope except these; return how many were forgotten."""

    async def wait_settled(self, *, turns: bool = False) -> None:
        """Wait until every written command, change and trigger has taken effect; with `turns` also turns."""

    async def revision_keys(self) -> frozenset[bytes | None]:
        """Return the keys of the revisions that it has."""

    async def set_revision(self, revision: Record, /) -> None:
        """Write a revision of the pipelines, and wait until it is in force."""
