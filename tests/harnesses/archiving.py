"""A user's turns in a log that is archived, with the rows that a worker has made of them."""

import json
from dataclasses import dataclass, field
from datetime import timedelta

from agents.memory.items import forgotten_event
from agents.rules.memory.versions import identify_turn, next_memory
from operations.copy.kafka_source import ArchivedLog
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.scopes import Scope
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL
from streams.channels import input_channels
from streams.flow.background.archiving import ArchiveTurns
from streams.flow.turns_log import ArchivedTurns, archive_forgotten
from streams.observability.metrics import Meters
from streams.topics import topics_with_prefix
from streams.wire.partitioning import partition_of
from tests.builders.turns import PARTITIONS, turn_fields
from tests.fakes.archived_topics import ARCHIVE, TURNS, FakeArchivedTopics
from tests.fakes.clock import FakeClock
from tests.fakes.tables.memories import FakeMemories

TOPICS = topics_with_prefix("memory.")
ALL = timedelta(seconds=-1)
"""Keeps no turn: also the last one is older."""


@dataclass
class ArchivingHarness:
    """Says, edits and forgets turns, archives them, and reads them as an operator does."""

    erases: bool = False
    page: int = 3
    topics: FakeArchivedTopics = field(init=False)
    memories: FakeMemories = field(default_factory=FakeMemories)
    clock: FakeClock = field(default_factory=FakeClock)
    meters: Meters = field(default_factory=Meters)

    def __post_init__(self) -> None:
        self.topics = FakeArchivedTopics(self.page)
        kinds = input_channels(TOPICS, Scope).turns.kinds
        self.archived = ArchivedTurns(ARCHIVE, kinds, PARTITIONS, self.memories, keeps_unknown=not self.erases)

    def say(self, user: str, turn_id: str, content: str, *, is_stored: bool = True, **changes: object) -> Record:
        """Write a turn to the log, a minute after the one before, and store it."""
        fields = turn_fields(content, scope={"user_id": user}, turn_id=turn_id, **changes)
        record = self.write(user, json.dumps(fields).encode())
        if is_stored:
            self.store(record)
        return record

    def write(self, user: str, value: bytes, partition: int | None = None) -> Record:
        self.clock.forward(60)
        place = partition_of(user.encode(), PARTITIONS) if partition is None else partition
        ms = round(self.clock.now().timestamp() * 1000)
        offset, headers = self.topics.end(TURNS, place), (("origin", b"app"),)
        return self.topics.append(Record(TURNS, place, offset, ms, user.encode(), value, headers))

    def store(self, record: Record) -> Memory:
        """Make the row of a turn, as `Remember` does."""
        turn = Turn.model_validate_json(record.value or b"")
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        known = self.memories.get(record.partition, identity.memory_id)
        memory = next_memory(turn, identity, known, (GENERAL, "fallback"), record.offset, asks_model=False)
        self.memories.put(record.partition, memory)
        return memory

    async def forget(self, record: Record) -> None:
        turn = Turn.model_validate_json(record.value or b"")
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        memory = self.memories.get(record.partition, identity.memory_id)
        assert memory is not None
        self.memories.forget(record.partition, memory.memory_id)
        for out in archive_forgotten(ARCHIVE, record.partition, (memory, [forgotten_event(memory)])):
            await self.topics.send(out)

    def process(self, kept: timedelta = ALL) -> ArchiveTurns:
        return ArchiveTurns(
            self.topics, self.archived, self.topics, ARCHIVE, self.clock, self.meters, kept=kept, pause_s=0
        )

    async def archive(self, kept: timedelta = ALL) -> None:
        for partition in range(PARTITIONS):
            await self.process(kept).move(partition)

    def log(self) -> ArchivedLog:
        """Return what an operator's command reads with."""
        return ArchivedLog(self.topics, TOPICS)

    async def read(self) -> list[Record]:
        log = self.log()
        found: list[Record] = []
        for partition in range(PARTITIONS):
            offset, end = 0, (await self.topics.ends()).get((TURNS, partition), 0)
            while offset < end:
                records, offset = await log.read(partition, offset, 4)
                found += records
        return found


def said(record: Record) -> tuple[int, int, int, bytes | None, bytes | None, object]:
    """Return what must not change of a turn."""
    return (record.partition, record.offset, record.timestamp_ms, record.key, record.value, record.headers)
