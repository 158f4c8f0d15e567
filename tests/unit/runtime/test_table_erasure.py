"""What is replaced in a table leaves its files, and its changelog gets a record more."""

import asyncio
from pathlib import Path
from typing import Any

import faust
import pytest

from streams.runtime.awaited_table import AwaitableTable, create_table
from streams.runtime.checked_store import CHECKED_ROCKSDB
from streams.runtime.table_erasure import TableErasure
from streams.wire.fillers import FILLER_KEY

SECRET = b"zebrafinch"


@pytest.fixture
def changelog(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, bytes, bytes | None]]:
    """What is written to changelogs: at once."""
    written: list[tuple[int | None, bytes, bytes | None]] = []

    def send(
        _self: object, partition: int | None, key: bytes, value: bytes | None, *_: Any, **__: Any
    ) -> asyncio.Future[None]:
        written.append((partition, key, value))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    monkeypatch.setattr(faust.Table, "send_changelog", send)
    return written


@pytest.fixture
def app(tmp_path: Path) -> faust.App:
    return faust.App("t", broker="kafka://nowhere:1", store=f"{CHECKED_ROCKSDB}://", datadir=str(tmp_path))


async def drained(table: AwaitableTable) -> None:
    for write in table.drain_pending_writes():
        await write


def files_with(secret: bytes, directory: Path) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file() and secret in path.read_bytes()]


async def test_replaced_row_leaves_all_files_and_others_stay(
    app: faust.App, changelog: list[tuple[int | None, bytes, bytes | None]], tmp_path: Path
) -> None:
    table = create_table(app, "memories")
    erasure = TableErasure(app)
    for number in range(300):
        table.write(0, f"k{number}", b"%s-%d" % (SECRET if number == 7 else b"other", number))
    table.database(0).flush()
    table.write(0, "k7", b"forgotten")
    await drained(table)
    assert files_with(SECRET, tmp_path), "RocksDB keeps what was replaced"
    await erasure.erase(0)
    assert files_with(SECRET, tmp_path) == []
    assert (table.read(0, "k7"), table.read(0, "k299")) == (b"forgotten", b"other-299")
    assert changelog[-1] == (0, FILLER_KEY.encode(), None)
    assert table.read(0, FILLER_KEY) is None


async def test_database_that_was_not_written_to_is_not_compacted_again(
    app: faust.App, changelog: list[tuple[int | None, bytes, bytes | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(app, "memories")
    table.write(0, "k", b"v")
    await drained(table)
    erasure = TableErasure(app)
    compacted: list[object] = []
    monkeypatch.setattr("streams.runtime.table_erasure._compact", compacted.append)
    await erasure.erase(0)
    await erasure.erase(0)
    assert len(compacted) == 1
    table.write(0, "k", b"w")
    await drained(table)
    await erasure.erase(0)
    assert len(compacted) == 2
    assert [key for _, key, _ in changelog].count(FILLER_KEY.encode()) == 3, "a changelog is filled each time"
