"""The rows of a table that a copy lacks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.types import TP

from schemas.failures import Unavailable
from streams.runtime import changelog_rows
from streams.runtime.awaited_table import create_table
from streams.runtime.changelog_rows import ChangelogRows
from streams.runtime.kafka_app import create_kafka_app
from streams.settings import Settings

PARTITION = 1


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[ChangelogRows]:
    """The rows of a table that is filled up to the offset 4."""
    app: Any = create_kafka_app(Settings(_env_file=None, data_dir=tmp_path), "worker")
    store: Any = create_table(app, "memories").data
    assert app.partition_locks.try_copy(PARTITION)
    assert app.partition_locks.try_copy(PARTITION + 1)
    found = ChangelogRows(app, "memories")
    store.set_persisted_offset(TP(found.topic, PARTITION), 4)
    yield found
    app.partition_locks.close()


async def test_nothing_is_read_where_nothing_is_lacking(rows: ChangelogRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_rows, "open_log_reader", lambda *_: pytest.fail("connected"))
    assert [found async for found in rows.after(PARTITION, 5)] == []
    assert [found async for found in rows.after(PARTITION + 1, 0)] == []


async def test_rows_come_with_the_next_offset_as_far_as_the_table_is_filled(
    rows: ChangelogRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def read_range(partition: TP, start: int, end: int, most: int | None) -> AsyncIterator[list[Any]]:
        asked.append((*partition, start, end))
        assert most is None
        yield [SimpleNamespace(key=b"a", value=b"1", offset=2), SimpleNamespace(key=b"a", value=None, offset=3)]
        yield []
        yield [SimpleNamespace(key=b"b", value=b"2", offset=4)]

    @asynccontextmanager
    async def connect(*_: object, **_options: int) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(read_range=read_range)

    monkeypatch.setattr(changelog_rows, "open_log_reader", connect)
    assert [found async for found in rows.after(PARTITION, 2)] == [({b"a": None}, 4), ({b"b": b"2"}, 5)]
    assert asked == [(rows.topic, PARTITION, 2, 5)]


async def test_outage_of_kafka_is_unavailable(rows: ChangelogRows, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connect(*_: object, **_options: int) -> AsyncIterator[SimpleNamespace]:
        raise KafkaConnectionError
        yield SimpleNamespace()

    monkeypatch.setattr(changelog_rows, "open_log_reader", connect)
    with pytest.raises(Unavailable):
        [found async for found in rows.after(PARTITION, 2)]
