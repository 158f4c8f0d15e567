"""Compare log, table, lexical index and vectors of users; with `--fix` repair them where possible.

Partition by partition: turns and rows are read from Kafka, users are then checked through the service: words by a list,
vectors by the job `verify`. Turns of the log that the table lacks are published again as the original records, so that
ids stay.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from modestream_client import MemoryClient, MemoryClientError, MemoryServiceError
from modestream_client.answers import Json
from modestream_client.kafka.log_reader import LogReader
from pydantic import BaseModel, ValidationError

from agents.rules.memory.versions import identify_turn
from operations.compare import Differences, UserListing, differences
from operations.copy.entry_builder import Entry, EntryBuilder
from operations.copy.kafka_source import ArchivedLog
from operations.copy.kafka_target import KafkaTarget, open_target
from operations.deployment import (
    Progress,
    Selection,
    at_most,
    client_of,
    deployment_at,
    list_boundaries,
    run_command,
    scope_of,
)
from schemas.failures import Rejected
from schemas.messages.decoding import decode
from schemas.messages.published import Boundary
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Origin, TextVersion
from streams.adapters.kafka.clients import committed_offsets
from streams.adapters.kafka.logs import open_reader
from streams.channels import input_channels
from streams.settings import Settings
from streams.tables.memory_tables import TOMBSTONES
from streams.topics import changelog, group_id, topics_with_prefix
from streams.wire.partitioning import original_record, partition_of

DeadPlace = tuple[int, int]
"""Partition and offset of a turn that became a dead letter."""


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """The last record of a turn: its offset, and the hash of its text."""

    boundary: str
    offset: int
    text_hash: str


class LoggedTurns:
    """The accepted turns of one partition's log."""

    def __init__(
        self, kinds: Mapping[str, type[Turn]], partitions: int, dead: Collection[DeadPlace], boundaries: Collection[str]
    ) -> None:
        """`dead` are the places of dead letters; only turns of `boundaries` are kept."""
        self._kinds = kinds
        self._partitions = partitions
        self._dead = dead
        self._boundaries = boundaries
        self.turns: dict[str, LoggedTurn] = {}

    def take(self, record: Record) -> None:
        """Take the next record; refused and misplaced ones are ignored."""
        origin = original_record(record)
        if (origin.partition, origin.offset) in self._dead:
            return
        try:
            turn = decode(record.value, self._kinds)
        except Rejected:
            return
        boundary = turn.scope.boundary
        if boundary not in self._boundaries or partition_of(boundary.encode(), self._partitions) != record.partition:
            return
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        self.turns[identity.memory_id] = LoggedTurn(boundary, record.offset, identity.text_hash)


class StoredRow(BaseModel):
    boundary: str
    origin: Origin = "said"
    versions: tuple[TextVersion, ...] = ()
    current: int = 0
    latest: int = -1

    @property
    def text_hash(self) -> str:
        return self.versions[self.current].text_hash if self.versions else ""


class StoredRows:
    """The rows of one partition of the table, from its changelog."""

    def __init__(self, boundaries: Collection[str]) -> None:
        self._boundaries = boundaries
        self.rows: dict[str, StoredRow] = {}
        self.tombstones: set[str] = set()

    def take(self, record: Record) -> None:
        memory_id, value = (record.key or b"").decode(), record.value or b""
        self.rows.pop(memory_id, None)
        self.tombstones.discard(memory_id)
        if value.startswith(TOMBSTONES):
            self.tombstones.add(memory_id)
            return
        try:
            row = StoredRow.model_validate_json(value)
        except ValidationError:
            return
        if row.boundary in self._boundaries:
            self.rows[memory_id] = row


def find_gaps(logged: LoggedTurns, stored: StoredRows, boundary: str, end: int) -> Differences:
    """Compare log and table of a boundary; `end` is the offset up to which the log was read. Pure.

    A tombstone is not a gap: the turn was forgotten, or replaced. `extra` are rows whose turns the log no longer has,
    because of a retention time or a lost log; they can't be repaired.
    """
    turns = {
        memory_id: turn
        for memory_id, turn in logged.turns.items()
        if turn.boundary == boundary and memory_id not in stored.tombstones
    }
    rows = {
        memory_id: row
        for memory_id, row in stored.rows.items()
        if memory_id in turns or (row.boundary == boundary and row.origin == "said" and row.latest < end)
    }
    return differences(turns, rows, lambda turn, row: row.text_hash == turn.text_hash or row.latest > turn.offset)


MENDED_BY_LOG = ("table_missing", "table_different")
"""Fixed by publishing the original record again."""

MENDED_BY_JOBS = ("vectors_missing", "vectors_orphaned", "stale", "pending", "failed")
"""Fixed by `reconcile` and `retry_failed`."""

MENDED_BY_RESTART = ("words_missing", "words_orphaned")
"""Fixed by a start without the folder `words`, which is rebuilt from the table."""

GAPS = (*MENDED_BY_LOG, *MENDED_BY_RESTART, *MENDED_BY_JOBS)
"""All kinds of differences; `pending` may be in progress."""

MAX_EXAMPLES = 20


@dataclass(slots=True)
class Findings:
    """Counts by name, and some ids of each; `checked` counts the memories examined."""

    checked: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, name: str, ids: Sequence[str], count: int | None = None) -> None:
        """Count these; `ids` may be incomplete."""
        number = len(ids) if count is None else count
        if number:
            self.counts[name] += number
            examples = self.examples.setdefault(name, [])
            examples += list(ids)[: MAX_EXAMPLES - len(examples)]

    def add(self, other: "Findings") -> None:
        self.checked += other.checked
        for name, number in other.counts.items():
            self.note(name, other.examples.get(name, []), number)

    def amiss(self, names: Sequence[str] = GAPS) -> int:
        return sum(self.counts[name] for name in names)


JOB_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class UserVerification:
    """Checks one user through the service."""

    memory: MemoryClient
    settings: Settings
    boundary: Boundary

    async def look(self, view: "PartitionView") -> Findings:
        """Return the differences: log against table, table against words, words against vectors."""
        findings = Findings()
        listing = UserListing(self.memory, self.boundary, self.settings.scope_model)
        listed = {memory["memory_id"]: memory for memory in await listing.memories()}
        rows = view.rows(self.boundary.boundary)
        findings.checked.update(rows=len(rows), listed=len(listed))
        in_log = view.gaps(self.boundary.boundary)
        findings.note("table_missing", in_log.missing)
        findings.note("table_different", in_log.different)
        findings.note("unlogged", in_log.extra)
        unlisted = differences(rows, listed, lambda _row, _memory: True).missing
        findings.note("words_missing", [memory_id for memory_id in unlisted if await self._exists(listing, memory_id)])
        answer = await self._job("verify")
        findings.checked["vectors"] += answer["checked"]
        for name in ("words_orphaned", *MENDED_BY_JOBS):
            findings.note(name, answer["examples"].get(name, []), answer[name])
        return findings

    async def mend_vectors(self) -> None:
        """Run the jobs that make and remove vectors."""
        await self._job("reconcile")
        await self._job("retry_failed")

    async def _job(self, name: str) -> Json:
        scope = await scope_of(self.memory, self.settings, self.boundary, None)
        return await run_command(self.memory, name, scope, {"all_projects": True}, timeout=JOB_TIMEOUT_S)

    async def _exists(self, listing: UserListing, memory_id: str) -> bool:
        """True if an unlisted memory exists: it was not forgotten meanwhile."""
        for scope in await listing.scopes():
            try:
                await run_command(self.memory, "get_memory", scope, {"memory_id": memory_id})
            except MemoryServiceError as refused:
                if refused.code != "not_found":
                    raise
            else:
                return True
        return False


APPLIED_POLL_S = 0.5
"""Interval between checks whether the worker has applied the turns read."""


@dataclass(slots=True)
class PartitionView:
    """Log and table of one partition; `end` is the offset up to which the log was read."""

    logged: LoggedTurns
    stored: StoredRows
    end: int

    def gaps(self, boundary: str) -> Differences:
        """Return how the table of a user differs from its log."""
        return find_gaps(self.logged, self.stored, boundary, self.end)

    def rows(self, boundary: str) -> dict[str, StoredRow]:
        return {memory_id: row for memory_id, row in self.stored.rows.items() if row.boundary == boundary}

    def offsets(self, gaps: Differences) -> list[int]:
        """Return the offsets of the turns that the table lacks or has with another text, in order."""
        return sorted(self.logged.turns[memory_id].offset for memory_id in (*gaps.missing, *gaps.different))


@dataclass(slots=True)
class Verifier:
    settings: Settings
    reader: LogReader
    turns: ArchivedLog
    memory: MemoryClient
    target: KafkaTarget | None
    """Target of republished original records; None: nothing is fixed."""
    at_once: int
    progress: Progress
    dead: frozenset[DeadPlace] = frozenset()
    found: Findings = field(default_factory=Findings)
    mended: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    async def verify(self, partition: int, boundaries: Sequence[Boundary]) -> None:
        view = await self._view(partition, frozenset(boundary.boundary for boundary in boundaries))

        async def work(boundary: Boundary) -> None:
            await self._verify_user(boundary, view, partition)
            self.progress.advance()

        await at_most(self.at_once, boundaries, work)

    async def _verify_user(self, boundary: Boundary, view: PartitionView, partition: int) -> None:
        user = UserVerification(self.memory, self.settings, boundary)
        try:
            findings = await user.look(view)
            if self.target is not None and findings.amiss():
                before = findings.amiss()
                await self._publish_again(self.target, view.offsets(view.gaps(boundary.boundary)), partition)
                await user.mend_vectors()
                findings = await user.look(await self._view(partition, frozenset({boundary.boundary})))
                self.mended += max(0, before - findings.amiss())
        except MemoryClientError as problem:
            self.failures[boundary.boundary] = str(problem)
            return
        self.found.add(findings)

    async def _publish_again(self, target: KafkaTarget, offsets: Sequence[int], partition: int) -> None:
        """Write the original records, in their order, and wait until they are applied."""
        builder = EntryBuilder(self.settings.partitions, self.settings.scope_model, self.settings.scope_model)
        for offset in offsets:
            records, _ = await self.turns.read(partition, offset, 1)
            for entry in (builder.build("turns", record) for record in records):
                if isinstance(entry, Entry):
                    await target.wait_applied(entry.scope, await target.write(entry))

    async def _view(self, partition: int, boundaries: frozenset[str]) -> PartitionView:
        topics = topics_with_prefix(self.settings.topic_prefix)
        kinds = input_channels(topics, self.settings.scope_model).turns.kinds
        logged = LoggedTurns(kinds, self.settings.partitions, self.dead, boundaries)
        end = await self.turns.read_through(partition, logged.take)
        # Afterwards: applied turns are in the changelog then, so none seems to be missing.
        await self._until_applied(topics.turns, partition, end)
        stored = StoredRows(boundaries)
        await self.reader.read_through((changelog(self.settings, "memories"), partition), stored.take)
        return PartitionView(logged, stored, end)

    async def _until_applied(self, topic: str, partition: int, end: int) -> None:
        group = group_id(self.settings)
        while (await committed_offsets(self.settings, group)).get((topic, partition), 0) < end:
            self.progress.say(f"waiting for a worker of {self.settings.topic_prefix}")
            await asyncio.sleep(APPLIED_POLL_S)
        self.progress.say("")


async def verify(selection: Selection, settings: Settings, *, fix: bool) -> int:
    """Verify users, print the result, and return 0 if nothing is wrong, else 1."""
    settings = await deployment_at(settings)
    boundaries = await list_boundaries(settings, selection.users)
    topics = topics_with_prefix(settings.topic_prefix)
    read = (topics.turns, topics.archive, changelog(settings, "memories"), topics.dead_letters)
    places = [(topic, number) for topic in read for number in range(settings.partitions)]
    with Progress("verify", len(boundaries), "users") as progress:
        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(open_reader(settings, places))
            memory = await stack.enter_async_context(client_of(settings, selection.principal))
            opening = open_target(settings, selection.principal, progress.say)
            target = await stack.enter_async_context(opening) if fix else None
            verifier = Verifier(
                settings, reader, ArchivedLog(reader, topics), memory, target, selection.at_once, progress
            )
            verifier.dead = await _dead_turns(reader, settings)
            for number in range(settings.partitions):
                own = [
                    boundary
                    for boundary in boundaries
                    if partition_of(boundary.boundary.encode(), settings.partitions) == number
                ]
                if own:
                    await verifier.verify(number, own)
    _print(verifier, len(boundaries))
    return 0 if not verifier.found.amiss() and not verifier.failures else 1


async def _dead_turns(reader: LogReader, settings: Settings) -> frozenset[DeadPlace]:
    topics = topics_with_prefix(settings.topic_prefix)
    places: set[DeadPlace] = set()

    def take(record: Record) -> None:
        if record.header("dead_letter_topic") == topics.turns.encode():
            partition, offset = (record.header(f"dead_letter_{name}") or b"-1" for name in ("partition", "offset"))
            places.add((int(partition), int(offset)))

    for number in range(settings.partitions):
        await reader.read_through((topics.dead_letters, number), take)
    return frozenset(places)


def _print(verifier: Verifier, users: int) -> None:
    found = verifier.found
    checked = ", ".join(f"{number} {name}" for name, number in found.checked.items())
    amiss = ", ".join(f"{found.counts[name]} {name}" for name in (*GAPS, "unlogged") if found.counts[name])
    sys.stdout.write(f"verify: {users} users, {checked}; {amiss or 'all alike'}; {verifier.mended} fixed\n")
    for name, ids in found.examples.items():
        sys.stderr.write(f"{name}: {' '.join(ids)}\n")
    for user, reason in verifier.failures.items():
        sys.stderr.write(f"{user}: {reason}\n")
    if found.counts["words_missing"] or found.counts["words_orphaned"]:
        sys.stderr.write("A worker that starts without DATA_DIR/partitions makes tables and lexical index again.\n")
