"""Tables that are ahead of their changelogs, as after a power cut."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.exceptions import ConsistencyError
from faust.types import TP

from streams.runtime.awaited_table import PARTITION_STORE, create_table, databases_of
from streams.runtime.fast_start_worker import FastStartTables, TableRecovery

TABLE_ROWS = {f"m{number}".encode(): b"text" for number in range(5)} | {b"m5": b"forgotten"}


class Changelog:
    """In place of Faust's consumer and producer: a partition of a topic, and the last keys of another one."""

    def __init__(self, keys: list[bytes], writes_until_kill: int = 1000, other_keys: Sequence[bytes] = ()) -> None:
        self.other_keys = other_keys
        self.records: list[tuple[bytes, bytes]] = [(key, b"old") for key in keys]
        self._left = writes_until_kill

    async def earliest_offsets(self, *tps: TP) -> dict[TP, int]:
        return dict.fromkeys(tps, 0)

    async def last_keys(self, tp: TP, last: int) -> list[bytes]:
        if tp.partition:
            return list(self.other_keys)
        return [key for key, _ in self.records[: last + 1]]

    async def send(self, topic: str, key: bytes, value: bytes, partition: int, *_: Any) -> Awaitable[Any]:
        if not self._left:
            raise ConnectionError("killed")
        self._left -= 1
        self.records.append((key, value))
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(SimpleNamespace(offset=len(self.records) - 1))
        return sent


class Worker:
    """A life of a worker with one table of one partition."""

    def __init__(self, directory: Path, changelog: Changelog) -> None:
        app: Any = faust.App(
            "t",
            broker="kafka://nowhere:1",
            store=f"{PARTITION_STORE}://",
            datadir=str(directory),
            TableManager=FastStartTables,
        )
        app.producer, app.derive = changelog, {}
        self._changelog, self._table = changelog, create_table(app, "memories")
        self.store: Any = self._table.data
        self.tp = TP("t-memories-changelog", 0)
        tables: Any = app.tables
        self._recovery: TableRecovery = tables.recovery

    @property
    def rows(self) -> dict[bytes, bytes]:
        return dict(self._table.scan(0))

    def write(self, rows: dict[bytes, bytes], persisted: int) -> None:
        for key, value in rows.items():
            self.store.rows(0).put(key, value)
        self.store.set_persisted_offset(self.tp, persisted)

    async def recover(self) -> int:
        """Run the parts of a recovery around the reading; return the offset after which it reads."""
        recovery, offsets, other = self._recovery, Counter[TP](), TP(self.tp.topic, 1)
        for tp in (self.tp, other):
            recovery.add_active(self._table, tp)
        offsets.update({tp: -1 if offset is None else offset for tp, offset in recovery.active_offsets.items()})
        recovery.active_highwaters[self.tp] = len(self._changelog.records) - 1
        recovery.active_highwaters[other] = len(self._changelog.other_keys) - 1
        await recovery._build_offsets(self._changelog, {self.tp, other}, offsets, "active")
        await recovery.complete_changelogs()
        return offsets[self.tp]

    def end(self) -> None:
        self.store._views.clear()
        databases_of(self.store.app).close_all()


async def test_table_that_is_ahead_is_written_to_its_changelog(tmp_path: Path) -> None:
    changelog = Changelog([b"m0", b"m1"])
    worker = Worker(tmp_path, changelog)
    worker.write(TABLE_ROWS, persisted=9)
    assert await worker.recover() == 1
    assert dict(changelog.records) == worker.rows == TABLE_ROWS
    assert worker.store.persisted_offset(worker.tp) == len(changelog.records) - 1
    worker.end()
    written = len(changelog.records)
    assert await Worker(tmp_path, changelog).recover() == written - 1
    assert len(changelog.records) == written


async def test_kill_while_it_is_written_is_followed_by_a_new_beginning(tmp_path: Path) -> None:
    worker = Worker(tmp_path, Changelog([b"m0"], writes_until_kill=3))
    worker.write(TABLE_ROWS, persisted=2)
    with pytest.raises(ConnectionError):
        await worker.recover()
    worker.end()
    # The half that was written lifts the end of the log above the offset that was persisted at first.
    changelog = Changelog([b"m0", b"m0", b"m1", b"m2"])
    worker = Worker(tmp_path, changelog)
    assert await worker.recover() == 0
    assert dict(changelog.records) == worker.rows == TABLE_ROWS


async def test_changelog_that_lost_all_records_is_completed_where_another_one_is_known(tmp_path: Path) -> None:
    changelog = Changelog([], other_keys=[b"mine"])
    worker = Worker(tmp_path, changelog)
    worker.write(TABLE_ROWS, persisted=9)
    worker.store.rows(1).put(b"mine", b"text")
    worker.store.set_persisted_offset(TP(worker.tp.topic, 1), 0)
    assert await worker.recover() == -1
    assert dict(changelog.records) == worker.rows == TABLE_ROWS


async def test_empty_log_is_refused(tmp_path: Path) -> None:
    changelog = Changelog([])
    worker = Worker(tmp_path, changelog)
    worker.write(TABLE_ROWS, persisted=9)
    with pytest.raises(ConsistencyError, match="another deployment"):
        await worker.recover()
    assert worker.rows == TABLE_ROWS
    assert changelog.records == []


async def test_log_of_another_deployment_is_refused(tmp_path: Path) -> None:
    changelog = Changelog([b"x0", b"x1"])
    worker = Worker(tmp_path, changelog)
    worker.write(TABLE_ROWS, persisted=9)
    with pytest.raises(ConsistencyError, match="another deployment"):
        await worker.recover()
    assert len(changelog.records) == 2
