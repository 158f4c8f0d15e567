"""Changelog writes that fail: each is written again, unless a newer one of its key is on its way."""

import asyncio
from typing import Any

import faust
import pytest

from schemas.memories import VectorLocation
from schemas.modes import Mode, ModeDeclarations
from streams.runtime import awaited_table as tables
from streams.runtime.awaited_table import AwaitableTable
from streams.tables.json_table import JsonTable
from streams.tables.memory_table import MemoryTable
from tests.builders.memories import made


class Changelog:
    """Stands where Faust's producer takes changelog records; keeps them, and gives them up when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[tuple[bytes, bytes]] = []
        self.sent: list[asyncio.Future[None]] = []
        monkeypatch.setattr(faust.Table, "send_changelog", self.send)
        monkeypatch.setattr(tables, "CHANGELOG_RETRY_S", 0.0)

    def send(self, _partition: int | None, key: bytes, value: bytes, *_: Any, **__: Any) -> asyncio.Future[None]:
        self.written.append((key, value))
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


@pytest.fixture
def table() -> AwaitableTable:
    return AwaitableTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"), name="t")


async def test_failed_changelog_write_is_retried(monkeypatch: pytest.MonkeyPatch, table: AwaitableTable) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"v")
    waiting = asyncio.ensure_future(table.pending_writes[0])
    log.sent[0].set_exception(TimeoutError())
    while len(log.sent) < 2:
        await asyncio.sleep(0)
    assert not waiting.done()
    log.sent[1].set_result(None)
    await waiting
    assert log.written == [(b"k", b"v"), (b"k", b"v")]


async def test_old_write_is_not_retried_after_a_newer_one_of_its_key(
    monkeypatch: pytest.MonkeyPatch, table: AwaitableTable
) -> None:
    log = Changelog(monkeypatch)
    table.send_changelog(0, b"k", b"old")
    table.send_changelog(0, b"other", b"x")
    table.send_changelog(0, b"k", b"new")
    log.sent[0].set_exception(TimeoutError())
    log.sent[1].set_result(None)
    log.sent[2].set_result(None)
    await asyncio.gather(*table.pending_writes)
    assert log.written == [(b"k", b"old"), (b"other", b"x"), (b"k", b"new")]


class Shard(dict[bytes, bytes]):
    """One partition's store."""


class Stores:
    """Stands where a Faust table keeps its partitions, and counts what is read."""

    def __init__(self) -> None:
        self.shard = Shard()

    def _db_for_partition(self, _partition: int) -> Shard:
        return self.shard


def kept_in(table: AwaitableTable, monkeypatch: pytest.MonkeyPatch) -> Shard:
    """What a table writes and reads, in place of RocksDB."""
    stores = Stores()
    monkeypatch.setattr(table, "_data", stores, raising=False)
    monkeypatch.setattr(type(table), "data", property(lambda _: stores), raising=False)
    monkeypatch.setattr(type(table), "__setitem__", lambda _, key, value: stores.shard.__setitem__(key, value))
    monkeypatch.setattr(type(table), "values", lambda _: stores.shard.values())
    monkeypatch.setattr(type(table), "items", lambda _: stores.shard.items())
    return stores.shard


@pytest.fixture
def app() -> faust.App:
    return faust.App("test", broker="kafka://nowhere:1", store="memory://")


def test_forgotten_record_leaves_a_tombstone_with_its_vector_location(
    monkeypatch: pytest.MonkeyPatch, app: faust.App
) -> None:
    table = MemoryTable(app)
    kept_in(table.table, monkeypatch)
    gone, stays = made("violin", 0), made("cello", 1)
    for memory in (gone, stays):
        table.put(0, memory)
    place = VectorLocation(mode="code", space="s1")
    table.forget(0, gone.memory_id, place)
    assert (table.last_place(0, gone.memory_id), table.last_place(0, stays.memory_id)) == (place, None)
    assert (table.get(0, gone.memory_id), table.get(0, stays.memory_id)) == (None, stays)
    known = [table.is_forgotten(0, one) for one in (gone.memory_id, stays.memory_id, "never there")]
    assert known == [True, False, False]
    assert list(table.all()) == [stays]
    table.remove(0, "never had a vector")
    assert list(table.tombstones()) == [(gone.memory_id, place)]
    assert sorted(table.removed(0), key=str) == [None, None, "never had a vector"], "one forgotten, one that is there"


def test_declared_modes_are_read_back_and_default_to_general(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = JsonTable(app, "modes", ModeDeclarations, key=str, max_parsed=2)
    kept_in(table.table, monkeypatch)
    declared = ModeDeclarations(modes=(Mode(name="code", embedder="tiny", embedding_dim=32),), user_default="code")
    table.put(0, "ana", declared)
    assert (table.get(0, "ana"), table.get(0, "ben")) == (declared, ModeDeclarations())
    assert [mode.name for mode in table.get(0, "ben").visible(None)] == ["general"]
    table.put(0, "ana", ModeDeclarations())
    assert table.get(0, "ana") == ModeDeclarations()


def test_equal_values_share_a_bounded_cache_entry(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = JsonTable(app, "modes", ModeDeclarations, key=str, max_parsed=2)
    kept_in(table.table, monkeypatch)
    for number in range(5):
        user = f"u{number}"
        table.put(0, user, ModeDeclarations(user_default=user))
        assert table.get(0, user).user_default == user
        assert table.get(0, user) is table.get(0, user)
        assert len(table._parsed) <= 2


def test_changelog_accepts_the_largest_records(table: AwaitableTable) -> None:
    assert table.changelog_topic.config is not None
    assert table.changelog_topic.config["max.message.bytes"] == str(16 * 1024 * 1024)
    assert table.changelog_topic.compacting
