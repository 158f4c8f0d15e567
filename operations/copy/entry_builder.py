"""Decide which records of a log are copied, and their form in the target. Pure.

Enters: a record of a log, and the forgotten memories. Leaves: the entry to write, or why it is left out. Guaranteed: a
turn keeps its memory id, its text, its time and its headers. A forgotten turn keeps its identity, so that it stays
forgotten, but not its text.

The logs are the source of truth: tables, lexical index, vectors and events are derived from them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from modestream_client.operations import OPERATING_COMMANDS, RATE, READING_COMMANDS, REPORT_IMPORT
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from agents.rules.memory.versions import identify_turn
from schemas.failures import Rejected
from schemas.internal.changes import JOB_KINDS
from schemas.messages.commands import Command
from schemas.messages.decoding import decode
from schemas.messages.records import Headers, Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.scopes import ANY_VALUE, Scope
from schemas.state.memories import derive_memory_id
from streams.channels import input_channels
from streams.topics import topics_with_prefix
from streams.wire.archived_turns import forgotten_turn
from streams.wire.partitioning import MOVED_FROM, partition_of
from streams.wire.reply_address import DIALECTS

Log = Literal["turns", "commands", "consolidate"]

LOGS: tuple[Log, ...] = ("turns", "commands", "consolidate")
"""The topics by name without prefix, in the order in which records of the same time are copied."""

LogPartition = tuple[Log, int]

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
        """Write a record and return its offset. Raises MemoryServiceError if Kafka refuses it."""

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


COPIED_FROM = "modestream_copied_from"
"""Header of a copied record: its `partition:offset` in the source's log."""

LEFT_OUT_HEADERS = frozenset(
    {
        "deadline",
        MOVED_FROM,
        COPIED_FROM,
        *(name for dialect in DIALECTS for name in (dialect.topic, dialect.correlation, dialect.partition)),
    }
)
"""Headers of the first delivery, which was already answered."""

DERIVED_COMMANDS = frozenset({*READING_COMMANDS, *OPERATING_COMMANDS, *JOB_KINDS, REPORT_IMPORT.name, RATE.name})
"""Commands that are not copied: they change nothing, or only data rebuilt from the logs. Edits of pipelines are copied
as revisions."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that is not copied, and why: `invalid`, `misplaced` (its copy is elsewhere in the log), `derived`."""

    why: str


class EntryBuilder:
    """Turns records into entries."""

    def __init__(
        self,
        partitions: int,
        source_scope: type[Scope],
        target_scope: type[Scope],
        forgotten: Collection[str] = frozenset(),
        *,
        renamed: Mapping[str, str] = MappingProxyType({}),
        chosen: Collection[str] | None = None,
    ) -> None:
        """`partitions` is the source's number; `forgotten` are the ids of its forgotten memories.

        `renamed` are scope fields that get another value; `chosen` are the ids of the memories to copy, None for all.
        """
        channels = input_channels(topics_with_prefix(""), source_scope)
        self._kinds: Mapping[Log, Mapping[str, type[Any]]] = {
            "turns": channels.turns.kinds,
            "commands": channels.commands.kinds,
            "consolidate": channels.triggers.kinds,
        }
        self._partitions = partitions
        self._target_scope = target_scope
        self.forgotten = forgotten
        self._renamed = renamed
        self._chosen = chosen
        self.changes_ids = bool(renamed) or set(source_scope.model_fields) != set(target_scope.model_fields)
        self.moved_ids: dict[str, str] = {}
        """Where scopes change: the new ids of the turns read so far."""

    def build(self, log: Log, record: Record) -> Entry | LeftOut:
        try:
            message = decode(record.value, self._kinds[log])
            scope = self._moved(message.scope)
        except (Rejected, ValidationError):
            return LeftOut("invalid")
        if partition_of(message.scope.boundary.encode(), self._partitions) != record.partition:
            return LeftOut("misplaced")
        if isinstance(message, Command) and message.command in DERIVED_COMMANDS:
            return LeftOut("derived")
        own = scope if scope.model_dump() != message.scope.model_dump() else None
        copied_from = (COPIED_FROM, f"{record.partition}:{record.offset}".encode())
        entry = Entry(
            log=log,
            scope=scope.model_dump(),
            boundary=scope.boundary,
            value=record.value or b"",
            headers=(*(pair for pair in record.headers if pair[0] not in LEFT_OUT_HEADERS), copied_from),
            timestamp_ms=record.timestamp_ms,
            origin=(log, record.partition, record.offset),
        )
        if isinstance(message, Turn):
            return self._turn(entry, message, record, own)
        return entry if own is None else replace(entry, value=_changed(record, own, self._move_ids))

    def _moved(self, scope: Scope) -> Scope:
        """Return the scope in the target. Raises ValidationError if the target's model refuses it."""
        values = {**scope.model_dump(), **self._renamed}
        # A command on a whole user has `*` as its project, which no model takes as a value.
        whole = {name: value for name, value in values.items() if value == ANY_VALUE}
        moved = self._target_scope.model_validate({**values, **dict.fromkeys(whole, "any")})
        return moved.model_copy(update=whole)

    def _turn(self, entry: Entry, turn: Turn, record: Record, scope: Scope | None) -> Entry | LeftOut:
        """Return the entry of a turn; `scope` is the new scope, if it changes."""
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        if scope is not None:
            new_id = derive_memory_id(scope.model_dump(), turn.conversation_id, identity.turn_id)
            self.moved_ids[identity.memory_id] = new_id
        if self._chosen is not None and identity.memory_id not in self._chosen:
            return LeftOut("left out")
        if identity.memory_id in self.forgotten:
            scopes = (scope or turn.scope).model_dump()
            value = forgotten_turn(
                identity.turn_id, scopes, turn.conversation_id, turn.role, turn.occurred_at, turn.mode
            )
            return replace(entry, value=value, is_forgotten=True)
        if scope is None:
            return entry
        # A derived turn id contains the scope: keep the former one.
        return replace(entry, value=_changed(record, scope, lambda value: value.update(turn_id=identity.turn_id)))

    def _move_ids(self, command: dict[str, Any]) -> None:
        """Replace the ids of turns in a command's arguments by their new ones."""
        arguments = command.get("arguments") or {}
        if "memory_id" in arguments:
            arguments["memory_id"] = self.moved_ids.get(arguments["memory_id"], arguments["memory_id"])
        if arguments.get("memory_ids"):
            arguments["memory_ids"] = [
                self.moved_ids.get(memory_id, memory_id) for memory_id in arguments["memory_ids"]
            ]


def _changed(record: Record, scope: Scope, change: Callable[[dict[str, Any]], None]) -> bytes:
    value = from_json(record.value or b"")
    value["scope"] = scope.model_dump()
    change(value)
    return to_json(value)


def copied_record(log: Log, record: Record) -> CopiedRecord | None:
    """Return the origin that a record of a target names; None if it names no origin."""
    header = record.header(COPIED_FROM)
    if header is None:
        return None
    partition, colon, offset = header.partition(b":")
    if not (colon and partition.isdigit() and offset.isdigit()):
        return None
    digest = digest_of(record.key or b"", record.value or b"", record.timestamp_ms)
    return CopiedRecord((log, int(partition), int(offset)), digest)
