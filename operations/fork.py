"""`modestream fork`: copy a user's log into another boundary, where it is built as any user's.

Enters: a user, the name of the fork, a choice of turns, other embedders. Leaves: a boundary with the user's
declarations, corrections and chosen turns, each with its time, conversation and turn id. Guaranteed: nothing forgotten
is copied, and what was forgotten since the last run is forgotten in the fork; each record is copied once, however often
the command runs and wherever it was killed: the records of the fork name their origins.
"""

import hashlib
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from modestream_client import MemoryClient
from modestream_client.arguments import ModeName
from modestream_client.hits import ListedMemory
from modestream_client.kafka.log_reader import LogReader
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json, to_json

from agents.rules.access.grants import PRINCIPAL_HEADER
from agents.rules.memory.versions import derive_item_id
from operations.backup import fork_files
from operations.compare import ITEM_TYPES
from operations.copy.copier import Copier, CopyPosition, CopyReport
from operations.copy.entry_builder import (
    COPIED_FROM,
    CopiedRecord,
    Entry,
    EntryBuilder,
    LeftOut,
    Log,
    LogPartition,
    Positions,
    copied_record,
)
from operations.copy.kafka_source import KafkaLogs, log_topics
from operations.copy.kafka_target import READ_AT_ONCE, KafkaTarget, open_target_as
from operations.deployment import Progress, client_of, deployment_at, run_command
from schemas.messages.records import Record
from schemas.moments import milliseconds_of
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.memories import derive_memory_id
from schemas.state.modes import GENERAL
from schemas.state.policies import OPERATOR
from streams.adapters.files.object_bytes import open_file_bytes
from streams.adapters.kafka.logs import open_reader
from streams.settings import Settings
from streams.topics import topics_with_prefix
from streams.wire.partitioning import boundary_in, partition_of

FORKED_FROM = "modestream_forked_from"
"""Header of a forked record: a digest of the user and the fork, which names neither."""

FORKED_LOGS: tuple[Log, ...] = ("turns", "commands")
"""Consolidations are not repeated: they depend on vectors, and a fork may have others."""

COUNTED = (
    "turns",
    "files",
    "commands",
    "already copied",
    "left out",
    "later",
    "derived",
    "invalid",
    "misplaced",
    "refused",
)
"""Counts of a report, in the order in which they are printed."""


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """The user, the fork's name, and which turns it gets.

    They are of a project, accepted until a time, and match no filters of `without`; None: all. `embedders` are those of
    modes that are to have another one.
    """

    user: str
    to: str
    project: str | None = None
    until: datetime | None = None
    without: Mapping[str, Any] | None = None
    embedders: Mapping[str, str] = field(default_factory=dict)
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """The boundary of a user, or of a fork, in a deployment."""

    name: str
    settings: Settings

    @property
    def fields(self) -> dict[str, str]:
        """The boundary's fields of its scopes. Raises ValueError for an invalid name."""
        return self.settings.scope_model.boundary_fields.values(self.name)

    @property
    def key(self) -> str:
        return self.settings.scope_model.boundary_fields.key(self.fields)

    @property
    def partition(self) -> int:
        return partition_of(self.key.encode(), self.settings.partitions)

    @property
    def selector(self) -> dict[str, str]:
        """The selector of everything that it has."""
        return {**dict.fromkeys(self.settings.scope_model.model_fields, ANY_VALUE), **self.fields}

    @property
    def scope(self) -> dict[str, str]:
        """A full scope of it, for commands on all of it."""
        return {**dict.fromkeys(self.settings.scope_model.model_fields, "default"), **self.fields}

    async def memories(self, client: MemoryClient, project: str | None = None, **options: Any) -> list[ListedMemory]:
        """Return its memories, superseded ones too, of one project or all. Raises MemoryClientError."""
        further = {name: value for name, value in self.selector.items() if name != PROJECT_FIELD}
        listed = client.iter_memories(
            user_id=self.name,
            projects=project or ANY_VALUE,
            scope=self.settings.scope_model.boundary_fields.others(further),
            include_superseded=True,
            page_size=500,
            **options,
        )
        return [memory async for memory in listed]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen turns, and the items of the user: each id with the one in the fork."""

    turns: Mapping[str, str]
    items: Mapping[str, str]


async def choose(options: ForkOptions, user: Branch, fork: Branch, client: MemoryClient, read_after: int) -> Chosen:
    """Return the chosen turns and items of the user.

    Raises MemoryClientError, ValueError for a user without such turns.
    """
    as_of = {} if options.until is None else {"as_of": options.until}
    # -1: the user's partition has no turns to wait for.
    listed = await user.memories(client, options.project, read_after=None if read_after < 0 else read_after, **as_of)
    unwanted: set[str] = set()
    if options.without is not None:
        matching = await user.memories(client, options.project, filters=options.without, **as_of)
        unwanted = {memory.memory_id for memory in matching}
    turns = {
        memory.memory_id: derive_memory_id({**memory.scope, **fork.fields}, memory.conversation_id, memory.turn_id)
        for memory in listed
        if memory.memory_id not in unwanted and memory.turn_id is not None and memory.conversation_id is not None
    }
    if not turns:
        raise ValueError(f"{options.user} has no such turns: nothing to fork")
    items: dict[str, str] = {}
    for item in await user.memories(client, options.project, types=ITEM_TYPES):
        # Its id has the mode in which it was found first.
        modes = dict.fromkeys((item.mode, *[memory.mode for memory in listed]))
        mode = next((mode for mode in modes if _item_id(item, item.scope, mode) == item.memory_id), None)
        if mode is not None:
            items[item.memory_id] = _item_id(item, {**item.scope, **fork.fields}, mode)
    return Chosen(turns, items)


def _item_id(item: ListedMemory, scope: Mapping[str, str], mode: str) -> str:
    return derive_item_id(scope, mode, item.type, item.text)


class ForkBuilder(EntryBuilder):
    """Turns a user's records into those of a fork."""

    def __init__(self, options: ForkOptions, fork: Branch, chosen: Chosen) -> None:
        scope, partitions = fork.settings.scope_model, fork.settings.partitions
        super().__init__(partitions, scope, scope, renamed=fork.fields, chosen=chosen.turns.keys())
        self.moved_ids |= chosen.items
        self.forgotten_ids: set[str] = set()
        """The memories that the user has forgotten by their ids."""
        self._known = chosen.turns.keys() | chosen.items.keys()
        self._until_ms = None if options.until is None else milliseconds_of(options.until)
        self._embedders = options.embedders
        sender = (PRINCIPAL_HEADER, (options.principal or OPERATOR).encode())
        self._headers = (sender, (FORKED_FROM, digest_of_fork(options.user, options.to)))

    def build(self, log: Log, record: Record) -> Entry | LeftOut:
        """Return the entry of a record, or why it is left out: also `later`, and `left out`."""
        command = from_json(record.value or b"{}") if log == "commands" else None
        # What was forgotten later is left out, too.
        if command is not None and command.get("command") == "forget" and not _forgets_all(command):
            self.forgotten_ids.add(str((command.get("arguments") or {}).get("memory_id")))
            return LeftOut("derived")
        if self._until_ms is not None and record.timestamp_ms > self._until_ms:
            return LeftOut("later")
        built = super().build(log, record)
        if isinstance(built, LeftOut):
            return built
        if command is not None and (named := _named_ids(command)) and not named & self._known:
            return LeftOut("left out")
        # The sender of the original may not be permitted to write here.
        kept = [pair for pair in built.headers if pair[0] != PRINCIPAL_HEADER]
        return replace(built, value=self._with_embedder(built.value), headers=(*kept, *self._headers))

    def _with_embedder(self, value: bytes) -> bytes:
        """Return a record; one that declares a mode that is to have another embedder declares it with that one."""
        if not self._embedders or b"declare_mode" not in value:
            return value
        record = from_json(value)
        if record.get("command") == "declare_mode":
            arguments = record["arguments"]
            arguments["embedder"] = self._embedders.get(arguments.get("name"), arguments.get("embedder"))
        return to_json(record)


class Trial(BaseModel, extra="forbid", strict=True):
    """A file that says how a fork is built: modes, each with the embedder that it is to have."""

    modes: dict[ModeName, str] = Field(min_length=1)


def read_trial(path: Path, user: str) -> Trial:
    """Return the trial of a file. Raises OSError, and ValueError that says how edits of the pipelines are compared."""
    try:
        return Trial.model_validate_json(path.read_bytes())
    except ValidationError as problem:
        edits = f"`modestream evaluate --user {user} --pipeline {path}` compares edits of the pipelines, without a fork"
        raise ValueError(
            f'{path} is not {{"modes": {{MODE: EMBEDDER}}}}: {problem.errors()[0]["msg"]}; {edits}'
        ) from None


def _forgets_all(command: Mapping[str, Any]) -> bool:
    """True for a `forget` of a user or a project, which removes declarations as well."""
    arguments = command.get("arguments") or {}
    return bool(arguments.get("user") or arguments.get("project")) and not arguments.get("dry_run")


def _named_ids(command: Mapping[str, Any]) -> set[str]:
    arguments = command.get("arguments") or {}
    return {name for name in (arguments.get("memory_id"), *(arguments.get("memory_ids") or ())) if name}


def digest_of_fork(user: str, to: str) -> bytes:
    """Return the value of the header of a fork's records."""
    return hashlib.sha256(to_json([user, to])).hexdigest()[:32].encode()


class UserLogs(KafkaLogs):
    """The turns and commands of one user; implements `LogSource`."""

    def __init__(self, reader: LogReader, user: Branch) -> None:
        super().__init__(reader, user.settings)
        self._user = user

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        """Return the user's records of a page, and the offset to read next."""
        records, following = await super().read(place, offset, most)
        fields, key = self._user.settings.scope_model.boundary_fields, self._user.key
        # By scope: the key of a record may be another one.
        return [record for record in records if boundary_in(record, fields) == key], following

    async def all_records(self) -> list[tuple[Log, Record]]:
        """Return the user's turns, archived ones too, and commands."""
        own: list[tuple[Log, Record]] = []
        for (log, partition), end in (await self.ends()).items():
            offset = 0
            while offset < end:
                records, offset = await self.read((log, partition), offset, READ_AT_ONCE)
                own += [(log, record) for record in records]
        return own

    async def revisions(self) -> list[Record]:
        """Return nothing: the fork is in the same deployment."""
        return []

    async def last_turn(self) -> int:
        """Return the offset of the last turn in the user's partition, -1 without any."""
        return (await self.ends()).get(("turns", self._user.partition), 0) - 1


class ForkTarget(KafkaTarget):
    """Writes a fork; implements `LogTarget`, with the fork's records alone."""

    def __init__(self, fork: Branch, user: str, *connections: Any) -> None:
        super().__init__(*connections)
        self._fork = fork
        self._digest = digest_of_fork(user, fork.name)

    async def ends(self) -> Positions:
        """Return nothing: copies are found by reading the fork's records, wherever the last run was."""
        return {}

    async def copied_since(self, _since: Positions) -> frozenset[CopiedRecord]:
        """Return the copied records. Raises ValueError for a boundary that is no fork of this user, or was dropped."""
        async with open_user_logs(self._fork) as logs:
            records = await logs.all_records()
        copies = {copied for log, record in records if (copied := copied_record(log, record)) is not None}
        check_name_is_free(self._fork.name, self._digest, records)
        await self.wait_last_turn()
        return frozenset(copies)

    async def wait_last_turn(self) -> None:
        """Wait until every turn of the fork is applied."""
        place = (self._topics["turns"], self._fork.partition)
        if (end := (await self._reader.ends([place]))[place]) > 0:
            await self.wait_applied(self._fork.selector, end - 1)


def check_name_is_free(name: str, digest: bytes, records: Sequence[tuple[Log, Record]]) -> None:
    """Raise ValueError if these records are of a user that is no such fork, or of a fork that was dropped."""
    if any(was_dropped(record) for _, record in records):
        raise ValueError(f"{name} was dropped, and its turns stay forgotten: choose another name")
    # By turns: a killed run may have declared modes only.
    turns = [record for log, record in records if log == "turns"]
    if turns and all(turn.header(FORKED_FROM) != digest for turn in turns):
        raise ValueError(f"{name} is a user already, and no fork of this one: choose another name")


def was_dropped(record: Record) -> bool:
    """True for a command that forgets its user, unless it was copied."""
    if b'"forget"' not in (record.value or b"") or record.header(COPIED_FROM) is not None:
        return False
    command = from_json(record.value or b"{}")
    arguments = command.get("arguments") or {}
    return bool(command.get("command") == "forget" and arguments.get("user") and not arguments.get("dry_run"))


@asynccontextmanager
async def open_user_logs(user: Branch) -> AsyncIterator[UserLogs]:
    """Open the log of a user, with archived turns. Raises Unavailable."""
    topics, archive = log_topics(user.settings.topic_prefix), topics_with_prefix(user.settings.topic_prefix).archive
    places = [(topic, user.partition) for topic in (*[topics[log] for log in FORKED_LOGS], archive)]
    async with open_reader(user.settings, places) as reader:
        yield UserLogs(reader, user)


async def fork(options: ForkOptions, settings: Settings) -> int:
    """Copy, forget in the fork what the user has forgotten since, print a summary; return 0, or 1 if records were lost.

    Raises ValueError for a name that is taken, MemoryClientError, Unavailable.
    """
    settings = await deployment_at(settings)
    user, to = Branch(options.user, settings), Branch(options.to, settings)
    if user.key == to.key:
        raise ValueError("--to is the user: choose another name")
    make = partial(ForkTarget, to, options.user)
    with Progress("fork", 0, "records") as progress:
        async with (
            client_of(settings, options.principal) as client,
            open_user_logs(user) as logs,
            open_target_as(make, settings, options.principal, progress.say) as target,
        ):
            chosen = await choose(options, user, to, client, await logs.last_turn())
            builder = ForkBuilder(options, to, chosen)
            copier = Copier(logs, target, builder, CopyPosition(), advanced=progress.reach)
            await copier.resume()
            # Before their turns, which a worker begins to read at once.
            files = await fork_files(open_file_bytes(settings.file_place), user.key, to.key, chosen.turns)
            await _declare_embedders(options.embedders.keys() & {GENERAL}, options, to, client)
            await copier.run()
            await target.wait_last_turn()
            await _declare_embedders(options.embedders.keys(), options, to, client)
            forgotten = await _forget_what_is_gone(builder, user, to, client)
    copier.report.counts["files"] = files
    return _report(options, copier.report, forgotten)


async def _declare_embedders(names: Collection[str], options: ForkOptions, fork: Branch, client: MemoryClient) -> None:
    """Give modes of the fork their other embedders, where they don't have them."""
    scope = fork.scope
    for name in sorted(names):
        modes = (await run_command(client, "list_modes", scope))["modes"]
        wanted = {"name": name, "embedder": options.embedders[name]}
        if not any(wanted.items() <= mode.items() for mode in modes):
            await run_command(client, "declare_mode", scope, {**wanted, "keep_former": False})


async def _forget_what_is_gone(builder: ForkBuilder, user: Branch, fork: Branch, client: MemoryClient) -> int:
    """Forget in the fork what the user no longer has; return how many memories."""
    there = {memory.memory_id for memory in await user.memories(client)}
    gone = {moved for memory_id, moved in builder.moved_ids.items() if memory_id not in there}
    forked = await fork.memories(client)
    copies = [memory for memory in forked if memory.memory_id in gone]
    modes = dict.fromkeys(memory.mode for memory in forked)
    for item in await fork.memories(client, types=ITEM_TYPES):
        own = {_item_id(item, {**item.scope, **user.fields}, mode) for mode in (item.mode, *modes)}
        if own & builder.forgotten_ids:
            copies.append(item)
    forgotten = [await run_command(client, "forget", copy.scope, {"memory_id": copy.memory_id}) for copy in copies]
    return sum(result["forgotten"] for result in forgotten)


def _report(options: ForkOptions, report: CopyReport, forgotten: int) -> int:
    counted = [f"{report.counts[name]} {name}" for name in COUNTED if report.counts[name]]
    again = f", {forgotten} forgotten since" if forgotten else ""
    sys.stdout.write(f"fork: {options.user} to {options.to}: {', '.join(counted)}{again}\n")
    for why in (*report.refusals, *report.lost):
        sys.stderr.write(f"not taken: {why}\n")
    return 1 if report.lost else 0
