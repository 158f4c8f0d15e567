"""Copies of tables that other workers serve: what reaches the database, and when."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from faust.types import TP

from schemas.messages.records import Record
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.runtime import follow_copies
from streams.runtime.awaited_table import create_table, databases_of
from streams.runtime.kafka_app import copies_of, create_kafka_app, derive_rows
from streams.runtime.partition_locks import PartitionLocks
from streams.settings import Settings
from streams.tables.memory_tables import index_rows
from tests.builders.memories import made

CHANGELOG = "memory.worker-memories-changelog"


class Log:
    """In place of Kafka and a `LogReader`: the records of one partition, a position for the reader."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.sought: list[int] = []
        self._next = 0

    @asynccontextmanager
    async def connect(self, _connection: object, partitions: Sequence[TP], **_options: Any) -> AsyncIterator["Log"]:
        self._partitions = partitions
        yield self

    def seek(self, offsets: Mapping[TP, int]) -> None:
        self.sought += offsets.values()
        self._next = max(offsets.values())

    async def poll(self, most: int) -> dict[TP, list[Record]]:
        await asyncio.sleep(0.001)
        source = self._partitions[0]
        read = enumerate(self.records[self._next : self._next + most], self._next)
        records = [Record(*source, offset, 0, key, value) for offset, (key, value) in read]
        self._next += len(records)
        return {source: records} if records else {}

    async def ends(self) -> dict[TP, int]:
        return dict.fromkeys(self._partitions, len(self.records))

    def position(self, _partition: TP) -> int:
        return self._next


async def _recover_nothing(*_: object) -> None:
    """Do nothing."""


class Keeper:
    """A worker that may keep a copy of partition 0."""

    def __init__(self, directory: Path, log: Log) -> None:
        settings = Settings(_env_file=None, data_dir=directory, standby_copies=1)
        self.app: Any = create_kafka_app(settings, "keeper")
        self.table = create_table(self.app, "memories")
        self.store: Any = self.table.data
        self.copies, self.log = copies_of(self.app), log
        self.derived: list[tuple[int, Mapping[bytes, bytes | None]]] = []
        derive_rows(self.app, "memories", lambda *rows: self.derived.append(rows), lambda _: None)
        self._directory = directory
        self._running = asyncio.create_task(self.copies.run())

    def other_process(self) -> PartitionLocks:
        return PartitionLocks(self._directory / "run")

    async def keep(self, partitions: Sequence[int], due: Sequence[int] = (), served: Sequence[int] = ()) -> None:
        assignment = self.app.assignor._assignment
        assignment.standbys = {"copies": list(partitions), "copies-due": list(due)}
        assignment.actives = {CHANGELOG: list(served)}
        self.app.tables.recovery.on_rebalance = self.app.tables._update_channels = _recover_nothing
        await self.app.tables.on_rebalance({TP(CHANGELOG, each) for each in served}, set(), set())

    async def serve(self) -> None:
        """Assign partition 0 to this worker, and open it."""
        await self.keep([], served=[0])
        await self.app.partition_locks.acquire()
        self.store.rows(0)

    def position(self) -> int:
        return int(databases_of(self.app).at(0).offset(CHANGELOG) or 0)

    async def until_at(self, offset: int) -> None:
        """Wait until the copy has all rows before an offset."""
        await self.until(lambda: self.position() == offset)

    @property
    def rows(self) -> dict[bytes, bytes]:
        return dict(self.table.scan(0))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.002)

    async def stop(self) -> None:
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running
        await self.store.stop()
        self.app.partition_locks.close()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    kafka = Log()
    monkeypatch.setattr(follow_copies, "open_log_reader", kafka.connect)
    monkeypatch.setattr(follow_copies, "ENDS_EVERY_S", 0.0)
    return kafka


@pytest.fixture
async def keeper(tmp_path: Path, log: Log) -> AsyncIterator[Keeper]:
    keeper = Keeper(tmp_path, log)
    yield keeper
    await keeper.stop()


async def test_copy_has_the_rows_of_the_changelog_and_its_offset(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None)]
    await keeper.keep([0])
    await keeper.until_at(4)
    assert keeper.rows == {b"a": b"3"}
    log.records.append((b"c", b"4"))
    await keeper.until(lambda: b"c" in keeper.rows)


async def test_rows_are_derived_by_partition_in_their_order(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", None)]
    await keeper.keep([0])
    await keeper.until_at(2)
    assert keeper.derived == [(0, {b"a": b"1", b"b": None})]


async def test_copy_goes_on_where_it_ended(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    await keeper.serve()
    keeper.store.set_persisted_offset(TP(CHANGELOG, 0), 0)
    keeper.store.commit(0)
    await keeper.keep([])
    await keeper.keep([0])
    await keeper.until_at(3)
    assert log.sought == [1]


class Copied:
    """A copy of memories with their words, and what another process reads of it."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper, words = keeper, SqliteLexicalIndex(databases_of(keeper.app))
        derive_rows(keeper.app, "memories", partial(index_rows, words), words.drop)

    async def keep(self) -> None:
        """Keep the copy until something of all records of the log is committed."""
        await self._keeper.keep([0])
        await self._keeper.until_at(len(self._keeper.log.records))
        await self._keeper.until(lambda: self.committed()[0])

    def committed(self) -> tuple[set[bytes], set[str]]:
        path = databases_of(self._keeper.app).path(0)
        with closing(sqlite3.connect(path)) as connection:
            rows = {key for (key,) in connection.execute("SELECT key FROM rows_memories")}
            return rows, {key for (key,) in connection.execute("SELECT memory_id FROM memories")}


def row_of(memory: Memory) -> tuple[bytes, bytes | None]:
    return memory.memory_id.encode(), memory.model_dump_json().encode()


async def test_rows_and_words_of_a_copy_are_committed_together(keeper: Keeper, log: Log) -> None:
    copied, memories = Copied(keeper), [made(text, number) for number, text in enumerate(("violin", "cello"))]
    log.records = [row_of(memory) for memory in memories]
    await copied.keep()
    ids = {memory.memory_id for memory in memories}
    assert copied.committed() == ({memory_id.encode() for memory_id in ids}, ids)


async def test_forgotten_memory_has_no_words_in_a_copy(keeper: Keeper, log: Log) -> None:
    copied, memory = Copied(keeper), made("violin", 0)
    log.records = [row_of(memory), (memory.memory_id.encode(), b"forgotten")]
    await copied.keep()
    assert copied.committed() == ({memory.memory_id.encode()}, set())


async def test_nothing_is_written_while_partitions_change_hands(keeper: Keeper, log: Log) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    async with keeper.copies.held(()):
        log.records.append((b"a", b"1"))
        await asyncio.sleep(0.05)
        assert keeper.rows == {}
    await keeper.until(lambda: keeper.rows)


async def test_copy_whose_files_another_process_holds_is_not_opened(
    keeper: Keeper, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_copies, "BACKOFF_S", 0.01)
    other = keeper.other_process()
    assert other.try_copy(0)
    log.records = [(b"a", b"1")]
    await keeper.keep([0])
    await asyncio.sleep(0.05)
    assert keeper.store._views == {}
    assert keeper.copies.behind() == {"0": None}
    other.close()
    await keeper.until(lambda: keeper.derived)
    assert not other.try_copy(0)


async def test_files_of_a_copy_are_not_this_workers_own(keeper: Keeper) -> None:
    locks = keeper.app.partition_locks
    await keeper.serve()
    assert locks.is_original(0)
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    assert locks.is_held(0)
    assert not locks.is_original(0)


async def test_copy_that_is_assigned_elsewhere_lets_go_of_its_files(keeper: Keeper) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    other = keeper.other_process()
    assert not other.try_copy(0)
    await keeper.keep([])
    assert other.try_copy(0)
    other.close()


async def test_partition_that_was_served_goes_on_at_its_own_offset(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", b"2")]
    await keeper.serve()
    keeper.store.apply_rows(TP(CHANGELOG, 0), {b"a": b"1"}, 0)
    keeper.store.commit(0)
    await keeper.keep([0])
    await keeper.until_at(2)
    assert log.sought == [1]


async def test_uncommitted_rows_of_a_partition_that_was_served_are_read_again(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", b"2")]
    await keeper.serve()
    keeper.store.apply_rows(TP(CHANGELOG, 0), {b"a": b"lost"}, 0)
    await keeper.keep([0])
    await keeper.until_at(2)
    assert keeper.rows == {b"a": b"1", b"b": b"2"}


async def test_partition_that_is_another_workers_is_no_copy(keeper: Keeper) -> None:
    await keeper.serve()
    await keeper.keep([])
    assert keeper.store._views == {}


async def test_copy_that_is_served_from_now_on_stays_open(keeper: Keeper) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    database = keeper.store.rows(0)
    await keeper.keep([], served=[0])
    assert keeper.store.rows(0) is database
    assert keeper.copies.behind() == {}


async def test_copy_that_is_kept_no_longer_is_closed(keeper: Keeper) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    await keeper.keep([])
    assert keeper.store._views == {}


async def test_complete_copies_that_are_due_have_the_worker_join_again(keeper: Keeper, log: Log) -> None:
    joined: list[frozenset[int]] = []
    keeper.copies.on_due = lambda: joined.append(keeper.copies.ready())
    log.records = [(b"a", b"1")]
    await keeper.keep([0], due=[0])
    await keeper.until(lambda: joined)
    await asyncio.sleep(0.05)
    assert joined == [{0}]
    assert keeper.copies.behind() == {"0": 0}


async def test_outage_of_kafka_is_waited_for(keeper: Keeper, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_copies, "BACKOFF_S", 0.01)
    outages = iter([KafkaError("away")])

    @asynccontextmanager
    async def connect(*arguments: Any, **options: Any) -> AsyncIterator[Log]:
        for problem in outages:
            raise problem
        async with log.connect(*arguments, **options):
            yield log

    monkeypatch.setattr(follow_copies, "open_log_reader", connect)
    log.records = [(b"a", b"1")]
    await keeper.keep([0])
    await keeper.until(lambda: keeper.derived)
