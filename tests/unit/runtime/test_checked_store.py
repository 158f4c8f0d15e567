"""Damage of RocksDB files: nothing is read as missing, and the database is made again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
import pytest
from faust.types import TP

from schemas.failures import Unavailable
from streams.damaged_stores import StoresSetAside
from streams.runtime.awaited_table import AwaitableTable, create_table
from streams.runtime.checked_store import CHECKED_ROCKSDB, CheckedDatabase

ROWS = 5_000

CHANGELOG_0 = TP("changelog", 0)


class ProcessEnded(Exception):
    """In place of the end of the process."""


def _table(directory: Path) -> AwaitableTable:
    app = faust.App("t", broker="kafka://nowhere:1", store=f"{CHECKED_ROCKSDB}://", datadir=str(directory / "tables"))
    table = create_table(app, "memories")

    def end() -> None:
        raise ProcessEnded

    store: Any = table.data
    store.on_damage = end
    return table


def _key(number: int) -> str:
    return f"k{number:05}"


def _folder(table: AwaitableTable) -> Path:
    store: Any = table.data
    folder: Path = store.partition_path(0)
    return folder


def _close(table: AwaitableTable) -> None:
    """Close the database, as the end of a process does."""
    store: Any = table.data
    store._dbs.pop(0).close()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder of a closed table with rows in a file, and some in the write-ahead log."""
    table = _table(tmp_path)
    store: Any = table.data
    database = store._db_for_partition(0)
    for number in range(ROWS):
        # Not compressible, so that the file has many blocks.
        database.put(_key(number).encode(), repr([hash((number, part)) for part in range(20)]).encode())
    store.set_persisted_offset(CHANGELOG_0, ROWS)
    database.flush()
    _close(table)
    return _folder(table)


def _damage_block(folder: Path) -> None:
    file = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(b"\xa5" * 10_000)


def _scan(table: AwaitableTable) -> None:
    assert sum(1 for _ in table.scan(0)) == ROWS


def _keys(table: AwaitableTable) -> None:
    assert sum(1 for _ in table.keys_from(0, b"")) == ROWS


def _read(table: AwaitableTable) -> None:
    assert all(table.read(0, _key(number)) is not None for number in range(ROWS))


@pytest.mark.parametrize("use", [_read, _scan, _keys])
def test_damaged_block_ends_the_process_and_the_next_start_is_empty(
    tmp_path: Path, written: Path, use: Callable[[AwaitableTable], None]
) -> None:
    table = _table(tmp_path)
    use(table)
    _close(table)
    _damage_block(written)
    table = _table(tmp_path)
    assert table.persisted_offset(CHANGELOG_0) == ROWS
    with pytest.raises(ProcessEnded):
        use(table)
    _close(table)
    assert [name.startswith("memories-0.db.damaged-") for name in StoresSetAside(tmp_path).names()] == [True]
    fresh = _table(tmp_path)
    assert fresh.persisted_offset(CHANGELOG_0) is None
    assert fresh.read(0, _key(0)) is None
    assert not list(fresh.scan(0))


def _cut_manifest(folder: Path) -> None:
    manifest = max(folder.glob("MANIFEST*"))
    manifest.write_bytes(manifest.read_bytes()[:10])


def _lose_manifest(folder: Path) -> None:
    max(folder.glob("MANIFEST*")).unlink()


def _lose_rows(folder: Path) -> None:
    for file in folder.glob("*.sst"):
        file.unlink()


def _file_for_folder(folder: Path) -> None:
    folder.rename(folder.with_name("away"))
    folder.write_bytes(b"garbage")


BREAK: dict[str, Callable[[Path], object]] = {
    "cut manifest": _cut_manifest,
    "lost manifest": _lose_manifest,
    "empty CURRENT": lambda folder: (folder / "CURRENT").write_bytes(b""),
    "lost rows": _lose_rows,
    "cut rows": lambda folder: [file.write_bytes(file.read_bytes()[:500]) for file in folder.glob("*.sst")],
    "a file in place of the folder": _file_for_folder,
}


@pytest.mark.parametrize("name", BREAK)
def test_database_that_cannot_be_opened_is_replaced_by_an_empty_one(tmp_path: Path, written: Path, name: str) -> None:
    BREAK[name](written)
    table = _table(tmp_path)
    assert table.persisted_offset(CHANGELOG_0) is None
    assert not list(table.scan(0))
    assert len(StoresSetAside(tmp_path).names()) == 1


def test_database_in_use_elsewhere_is_kept(tmp_path: Path, written: Path) -> None:
    first = _table(tmp_path)
    assert first.persisted_offset(CHANGELOG_0) == ROWS
    with pytest.raises(Exception, match="lock"):
        _table(tmp_path).read(0, _key(0))
    assert not StoresSetAside(tmp_path).names()
    _scan(first)
    assert written.is_dir()


def test_scan_yields_rows_only_and_begins_where_it_is_told(tmp_path: Path) -> None:
    table = _table(tmp_path)
    store: Any = table.data
    store.set_persisted_offset(CHANGELOG_0, 7)
    for key in (b"a", b"b", b"c"):
        store._db_for_partition(0).put(key, b"1")
    assert list(table.scan(0)) == [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]
    assert list(table.keys_from(0, b"b")) == [b"b", b"c"]


class FullDisk:
    """A database that has no room, until it gets some. The text is RocksDB's."""

    def __init__(self) -> None:
        self.has_room = False
        self.rows: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if not self.has_room:
            message = "IO error: No space left on device: While appending to file: /data/4.log: No space left on device"
            raise RuntimeError(message)
        self.rows[key] = value


def test_write_to_a_full_disk_is_unavailable_and_succeeds_later() -> None:
    disk, seen = FullDisk(), list[Exception]()
    database = CheckedDatabase(disk, seen.append)
    with pytest.raises(Unavailable, match="No space left"):
        database.put(b"k", b"v")
    disk.has_room = True
    database.put(b"k", b"v")
    assert disk.rows == {b"k": b"v"}


@pytest.mark.parametrize("message", ["Corruption: bad block", "IO error: No such file or directory: 4.sst", "Busy"])
def test_other_errors_of_a_write_stay_what_they_are(message: str) -> None:
    class Broken(FullDisk):
        def put(self, key: bytes, value: bytes) -> None:
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=message) as raised:
        CheckedDatabase(Broken(), lambda _: None).put(b"k", b"v")
    assert type(raised.value) is RuntimeError
