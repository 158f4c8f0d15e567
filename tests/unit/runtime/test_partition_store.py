"""Faust's store over the partition's database: nothing is read as missing, and what is damaged is made again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import faust
import pytest
from faust.types import TP

from schemas.failures import Unavailable
from streams.damaged_stores import StoresSetAside
from streams.partition.database import PartitionDatabases
from streams.runtime.awaited_table import PARTITION_STORE, AwaitableTable, create_table, databases_of

ROWS = 5_000

CHANGELOG_0 = TP("changelog", 0)

FILE = "partition-0.sqlite"


class ProcessEnded(Exception):
    """In place of the end of the process."""


def _table(directory: Path) -> AwaitableTable:
    def end() -> None:
        raise ProcessEnded

    app: Any = faust.App("t", broker="kafka://nowhere:1", store=f"{PARTITION_STORE}://", datadir=str(directory))
    app.databases, app.derive = PartitionDatabases(directory / "partitions", end), {}
    return create_table(app, "memories")


def _key(number: int) -> str:
    return f"k{number:05}"


def _persisted(table: AwaitableTable) -> int | None:
    offset: int | None = table.persisted_offset(CHANGELOG_0)
    return offset


def _close(table: AwaitableTable) -> None:
    """Close the database, as the end of a process does."""
    databases_of(table.app).close_all()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The file of a closed table."""
    table = _table(tmp_path)
    store: Any = table.data
    store.rows(0).apply((_key(number).encode(), repr(range(number)).encode() * 20) for number in range(ROWS))
    store.set_persisted_offset(CHANGELOG_0, ROWS)
    store.commit(0)
    _close(table)
    return tmp_path / "partitions" / FILE


def _scan(table: AwaitableTable) -> None:
    assert sum(1 for _ in table.scan(0)) == ROWS


def _keys(table: AwaitableTable) -> None:
    assert sum(1 for _ in table.keys_under(0, "")) == ROWS


def _read(table: AwaitableTable) -> None:
    assert all(table.read(0, _key(number)) is not None for number in range(ROWS))


@pytest.mark.parametrize("use", [_read, _scan, _keys])
def test_damaged_block_ends_the_process_and_the_next_start_is_empty(
    tmp_path: Path, written: Path, use: Callable[[AwaitableTable], None]
) -> None:
    size = written.stat().st_size
    with written.open("r+b") as content:
        content.seek(size // 4)
        content.write(b"\xa5" * (size // 2))
    table = _table(tmp_path)
    assert _persisted(table) == ROWS
    with pytest.raises(ProcessEnded):
        use(table)
    assert [name.startswith(f"{FILE}.damaged-") for name in StoresSetAside(tmp_path).names()] == [True]
    fresh = _table(tmp_path)
    assert _persisted(fresh) is None
    assert not list(fresh.scan(0))
    _close(fresh)


def _directory_for_file(file: Path) -> None:
    file.unlink()
    file.mkdir()


BREAK: dict[str, Callable[[Path], object]] = {
    "other content": lambda file: file.write_bytes(b"garbage" * 4096),
    "cut": lambda file: file.write_bytes(file.read_bytes()[: 3 * 4096]),
    "a directory": _directory_for_file,
}


@pytest.mark.parametrize("name", BREAK)
def test_database_that_cannot_be_opened_is_replaced_by_an_empty_one(tmp_path: Path, written: Path, name: str) -> None:
    BREAK[name](written)
    table = _table(tmp_path)
    assert _persisted(table) is None
    assert not list(table.scan(0))
    assert len(StoresSetAside(tmp_path).names()) == 1
    _close(table)


def test_scan_is_in_the_order_of_writing_and_keys_are_those_of_a_prefix(tmp_path: Path) -> None:
    table = _table(tmp_path)
    for key in (b"b", b"a", b"c", "b\U0010ffff".encode()):
        table.rows(0).put(key, b"1")
    assert list(table.scan(0))[:3] == [(b"b", b"1"), (b"a", b"1"), (b"c", b"1")]
    assert list(table.keys_under(0, "b")) == ["b", "b\U0010ffff"]
    assert list(table.keys_under(0, "")) == ["a", "b", "b\U0010ffff", "c"]
    _close(table)


def test_rows_and_offset_are_durable_together(tmp_path: Path) -> None:
    table = _table(tmp_path)
    store: Any = table.data
    table.rows(0).put(b"kept", b"1")
    store.set_persisted_offset(CHANGELOG_0, 7)
    store.commit(0)
    table.rows(0).put(b"lost", b"1")
    store.set_persisted_offset(CHANGELOG_0, 8)
    databases_of(table.app).close(0)
    again = _table(tmp_path)
    assert list(again.scan(0)) == [(b"kept", b"1")]
    assert _persisted(again) == 7
    _close(again)


def test_rows_of_a_changelog_are_derived_before_they_replace_others(tmp_path: Path) -> None:
    table = _table(tmp_path)
    app, store = cast("Any", table.app), cast("Any", table.data)
    derived: list[tuple[bytes | None, dict[bytes, bytes | None]]] = []
    app.derive = {"memories": lambda partition, rows: derived.append((table.read(partition, "k"), rows))}
    store.rows(0).put(b"k", b"old")
    store.apply_rows(CHANGELOG_0, {b"k": b"new"}, 4)
    assert derived == [(b"old", {b"k": b"new"})]
    _close(table)


def test_rows_of_a_changelog_have_its_offset(tmp_path: Path) -> None:
    table = _table(tmp_path)
    cast("Any", table.data).apply_rows(CHANGELOG_0, {b"k": b"v"}, 4)
    assert _persisted(table) == 4
    _close(table)


def test_write_to_a_full_disk_is_unavailable_until_the_partition_is_opened_again(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.rows(0).put(b"before", b"1")
    database = databases_of(table.app).at(0)
    database.commit()
    [pages] = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(Unavailable, match="full"):
        table.rows(0).put(b"k", b"v" * 100_000)
    with pytest.raises(Unavailable, match="open the partition again"):
        table.rows(0).put(b"k", b"v")
    databases_of(table.app).close(0)
    again = _table(tmp_path)
    again.rows(0).put(b"k", b"v" * 100_000)
    assert again.read(0, "before") == b"1"
    _close(again)
