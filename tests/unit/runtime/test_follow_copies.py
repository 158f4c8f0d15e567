"""Copies of tables that other workers serve: what reaches the database, and when."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from faust.types import TP

from schemas.messages.records import Record
from streams.runtime import follow_copies
from streams.runtime.awaited_table import create_table
from streams.runtime.follow_copies import Rows
from streams.runtime.kafka_app import copies_of, create_kafka_app
from streams.runtime.partition_locks import PartitionLocks
from streams.settings import Settings

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


class Derived:
    """Notes what it gets."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self.left: list[tuple[int, int | None]] = []
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.at = 0

    def leave(self, partition: int, position: int | None) -> None:
        self.left.append((partition, position))
        self.at = self.at if position is None else position

    def open(self, partition: int) -> None:
        self.opened.append(partition)

    def position(self, _partition: int) -> int:
        return self.at

    async def apply(self, _partition: int, rows: Rows, position: int) -> None:
        self.rows |= rows
        self.at = position

    def close(self, partition: int) -> None:
        self.closed.append(partition)


async def _recover_nothing(*_: object) -> None:
    """Do nothing."""


class Keeper:
    """A worker that may keep a copy of partition 0."""

    def __init__(self, directory: Path, log: Log) -> None:
        settings = Settings(_env_file=None, data_dir=directory, standby_copies=1)
        self.app: Any = create_kafka_app(settings, "keeper")
        self.table = create_table(self.app, "memories")
        self.store: Any = self.table.data
        self.copies, self.log, self.derived = copies_of(self.app), log, Derived()
        self.copies.derived["memories"] = self.derived
        self._directory = directory
        self._running = asyncio.create_task(self.copies.run())

    def other_process(self) -> PartitionLocks:
        """Return the locks of another process of the data directory."""
        return PartitionLocks(self._directory / "run")

    async def keep(self, partitions: Sequence[int], due: Sequence[int] = (), served: Sequence[int] = ()) -> None:
        """Assign copies."""
        assignment = self.app.assignor._assignment
        assignment.standbys = {"copies": list(partitions), "copies-due": list(due)}
        assignment.actives = {CHANGELOG: list(served)}
        self.app.tables.recovery.on_rebalance = self.app.tables._update_channels = _recover_nothing
        await self.app.tables.on_rebalance({TP(CHANGELOG, one) for one in served}, set(), set())

    async def serve(self) -> None:
        """Assign partition 0 to this worker, and open it."""
        await self.keep([], served=[0])
        await self.app.partition_locks.acquire()
        self.store.rows(0)

    @property
    def rows(self) -> dict[bytes, bytes]:
        """The rows in the database."""
        return dict(self.table.scan(0))

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait."""
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.002)

    async def stop(self) -> None:
        """End."""
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
    await keeper.until(lambda: keeper.derived.at == 4)
    assert keeper.rows == {b"a": b"3"}
    assert keeper.derived.rows == {b"a": b"3", b"b": None}
    assert keeper.store.persisted_offset(TP(CHANGELOG, 0)) == 3
    log.records.append((b"c", b"4"))
    await keeper.until(lambda: b"c" in keeper.rows)


async def test_copy_goes_on_where_the_earlier_of_both_ended(keeper: Keeper, log: Log) -> None:
    log.records = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    await keeper.serve()
    keeper.store.set_persisted_offset(TP(CHANGELOG, 0), 2)
    # As after a restart.
    await keeper.keep([])
    gc.collect()
    keeper.derived.at = 1
    await keeper.keep([0])
    await keeper.until(lambda: keeper.derived.at == 3)
    assert log.sought == [1]


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
    assert (keeper.store._views, keeper.derived.opened, keeper.copies.behind()) == ({}, [], {"0": None})
    other.close()
    await keeper.until(lambda: keeper.derived.at == 1)
    assert not other.try_copy(0)


async def test_files_of_a_copy_are_not_this_workers_own(keeper: Keeper) -> None:
    locks = keeper.app.partition_locks
    await keeper.serve()
    assert locks.is_original(0)
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    assert (locks.is_held(0), locks.is_original(0)) == (True, False)


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
    keeper.store.rows(0).put(b"a", b"1")
    keeper.store.set_persisted_offset(TP(CHANGELOG, 0), 0)
    await keeper.keep([0])
    assert keeper.derived.left == [(0, 1)]
    await keeper.until(lambda: keeper.derived.at == 2)
    assert log.sought == [1]


async def test_partition_that_is_another_workers_is_no_copy(keeper: Keeper) -> None:
    await keeper.serve()
    keeper.store.set_persisted_offset(TP(CHANGELOG, 0), 0)
    await keeper.keep([])
    assert (keeper.derived.left, keeper.store._views) == ([(0, None)], {})


async def test_copy_that_is_served_from_now_on_stays_open(keeper: Keeper) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    database = keeper.store.rows(0)
    await keeper.keep([], served=[0])
    assert keeper.store.rows(0) is database
    assert keeper.copies.behind() == {}
    assert keeper.derived.closed == [0]


async def test_copy_that_is_kept_no_longer_is_closed(keeper: Keeper) -> None:
    await keeper.keep([0])
    await keeper.until(lambda: keeper.copies.ready() == {0})
    await keeper.keep([])
    assert (keeper.store._views, keeper.derived.closed) == ({}, [0])


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
    await keeper.until(lambda: keeper.derived.at == 1)
