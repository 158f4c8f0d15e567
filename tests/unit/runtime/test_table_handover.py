"""Tables of a partition are open in the process that holds it, and in no other one of the data directory."""

import asyncio
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.tables.recovery import RebalanceAgain
from faust.types import TP

from streams.runtime.awaited_table import AwaitableTable, create_table
from streams.runtime.fast_start_worker import TableRecovery
from streams.runtime.kafka_app import create_kafka_app, on_partition_lost, partition_locks_of
from streams.settings import Settings

CHANGELOG = TP("memory.worker-memories-changelog", 0)


class Worker:
    """The tables of one worker of a data directory."""

    def __init__(self, data_dir: Path) -> None:
        app = create_kafka_app(Settings(data_dir=data_dir, _env_file=None), "w")
        self.app, self.table, self.locks = app, create_table(app, "memories"), partition_locks_of(app)
        self.tables: Any = app.tables
        self.closed: list[int] = []
        on_partition_lost(app, self._close)

    @property
    def store(self) -> Any:
        return self.table.data

    @property
    def recovery(self) -> TableRecovery:
        recovery: TableRecovery = self.tables.recovery
        return recovery

    async def _close(self, partition: int) -> None:
        assert self.locks.is_held(partition)
        self.closed.append(partition)

    async def take(self, *partitions: int) -> None:
        self.locks.assign(partitions)
        await self.locks.acquire()

    async def give_up(self, *, keeps: tuple[int, ...] = ()) -> None:
        for partition in self.locks.assign(keeps):
            await self.tables.release(partition)

    def close(self) -> None:
        for partition in list(self.store._views):
            self.store.close_partition(partition)
        self.locks.close()


def put(table: AwaitableTable, partition: int, key: str) -> None:
    store: Any = table.data
    store.rows(partition).put(key.encode(), b"value")


async def test_tables_of_other_workers_are_not_opened(tmp_path: Path) -> None:
    with closing(Worker(tmp_path)) as worker:
        with pytest.raises(KeyError):
            worker.table.read(0, "k")
        await worker.take(0)
        assert worker.table.read(0, "k") is None
        event: Any = SimpleNamespace(
            message=SimpleNamespace(partition=1, tp=TP("t", 1), offset=1, key=b"k", value=b"v")
        )
        worker.table.apply_changelog_batch([event])
        await worker.give_up()
        with pytest.raises(KeyError):
            worker.table.read(0, "k")


async def test_recovery_writes_rows_and_their_offset(tmp_path: Path) -> None:
    with closing(Worker(tmp_path)) as worker:
        await worker.take(0)
        message = SimpleNamespace(partition=0, tp=CHANGELOG, offset=5, key=b"k", value=b"v")
        event: Any = SimpleNamespace(message=message)
        worker.table.apply_changelog_batch([event])
        assert worker.table.read(0, "k") == b"v"
        assert worker.store.persisted_offset(CHANGELOG) == 5


async def test_next_owner_has_what_was_committed(tmp_path: Path) -> None:
    with closing(Worker(tmp_path)) as first, closing(Worker(tmp_path)) as second:
        await first.take(0, 1)
        put(first.table, 0, "mine")
        put(first.table, 1, "other")
        first.store.set_persisted_offset(CHANGELOG, 17)
        first.store.commit(0)
        await first.give_up(keeps=(1,))
        assert first.closed == [0]
        await second.take(0)
        assert second.table.read(0, "mine") == b"value"
        assert second.store.persisted_offset(CHANGELOG) == 17
        assert first.table.read(1, "other") == b"value"


async def test_recovery_waits_for_the_last_owner(tmp_path: Path) -> None:
    with closing(Worker(tmp_path)) as first, closing(Worker(tmp_path)) as second:
        await first.take(0)
        put(first.table, 0, "k")
        first.store.commit(0)
        second.locks.assign([0])
        second.recovery.add_active(second.table, CHANGELOG)
        waiting = asyncio.create_task(second.recovery._wait(asyncio.sleep(0)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await first.give_up()
        await asyncio.wait_for(waiting, 5)
        assert second.table.read(0, "k") == b"value"


async def test_next_rebalance_ends_the_wait(tmp_path: Path) -> None:
    with closing(Worker(tmp_path)) as first, closing(Worker(tmp_path)) as second:
        await first.take(0)
        second.locks.assign([0])
        waiting = asyncio.create_task(second.recovery._wait(asyncio.sleep(0)))
        await asyncio.sleep(0.05)
        second.recovery.signal_recovery_start.set()
        with pytest.raises(RebalanceAgain):
            await asyncio.wait_for(waiting, 5)
