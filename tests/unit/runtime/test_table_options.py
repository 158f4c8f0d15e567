"""The memory of tables does not grow with what is written to them and read from them."""

import random
from pathlib import Path
from typing import Any

import faust
import pytest

from streams.runtime.awaited_table import create_table
from streams.runtime.checked_store import CHECKED_ROCKSDB
from streams.runtime.table_options import BLOCK_CACHE_BYTES, WRITE_BUFFER_BYTES, WRITE_BUFFERS

ROW_BYTES = 8_192

ROWS = 10 * WRITE_BUFFER_BYTES // ROW_BYTES
"""Of a table that is many times as large as a buffer; two of them are larger than the cache of blocks."""


@pytest.fixture
def databases(tmp_path: Path) -> list[Any]:
    """One partition of each of two tables, with rows that can't be compressed."""
    app = faust.App("t", broker="kafka://nowhere:1", store=f"{CHECKED_ROCKSDB}://", datadir=str(tmp_path))
    stores: list[Any] = [create_table(app, name).data for name in ("memories", "intentions")]
    opened = [store._db_for_partition(0) for store in stores]
    source = random.Random(1)
    for database in opened:
        for number in range(ROWS):
            database.put(f"{number:05}".encode(), source.randbytes(ROW_BYTES))
    return opened


def test_buffers_and_cached_blocks_are_bounded(databases: list[Any]) -> None:
    for database in databases:
        assert database.property_int_value("rocksdb.cur-size-all-mem-tables") <= WRITE_BUFFERS * WRITE_BUFFER_BYTES
        assert sum(1 for _ in database.items()) == ROWS
    first, second = (database.property_int_value("rocksdb.block-cache-usage") for database in databases)
    assert first == second <= BLOCK_CACHE_BYTES


def test_rows_are_found_in_the_files(databases: list[Any]) -> None:
    assert all(len(database.get(b"00000")) == ROW_BYTES and database.get(b"missing") is None for database in databases)
