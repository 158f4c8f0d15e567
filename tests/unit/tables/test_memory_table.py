"""The table of memories: records and tombstones."""

from pathlib import Path

import faust
import pytest

from schemas.state.memories import Memory, MemoryExcerpt, VectorLocation
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.partition.database import PartitionDatabases
from streams.tables.memory_tables import MemoryTable, index_rows
from tests.builders.memories import made
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.table_store import dict_store

LOCATION = VectorLocation(mode="code", space="s1")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> MemoryTable:
    table = MemoryTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"))
    dict_store(table.table, monkeypatch)
    return table


def test_forgotten_record_leaves_a_tombstone_with_its_vector_location(table: MemoryTable) -> None:
    gone, stays = made("violin", 0), made("cello", 1)
    for memory in (gone, stays):
        table.put(0, memory)
    table.forget(0, gone.memory_id, LOCATION)
    assert table.get(0, gone.memory_id) is None
    assert table.get(0, stays.memory_id) == stays
    assert table.last_place(0, gone.memory_id) == LOCATION
    assert table.last_place(0, stays.memory_id) is None
    forgotten = [table.is_forgotten(0, each) for each in (gone.memory_id, stays.memory_id, "never written")]
    assert forgotten == [True, False, False]


def test_tombstones_are_no_records(table: MemoryTable) -> None:
    gone, stays = made("violin", 0), made("cello", 1)
    for memory in (gone, stays):
        table.put(0, memory)
    table.forget(0, gone.memory_id, LOCATION)
    table.remove(0, "without a vector")
    assert list(table.all()) == [stays]
    assert table.is_removed(0, "without a vector")


def test_excerpt_has_the_fields_of_the_record(table: MemoryTable) -> None:
    memory = made("violin", 0)
    fake = FakeMemories()
    expected = MemoryExcerpt(
        memory_id=memory.memory_id,
        conversation_id=memory.conversation_id,
        type=memory.type,
        text=memory.text,
        occurred_at=memory.occurred_at,
    )
    for store in (table, fake):
        store.put(0, memory)
        assert store.excerpt(0, memory.memory_id) == expected
        assert store.excerpt(0, "never written") is None


def test_forgotten_record_has_no_excerpt(table: MemoryTable) -> None:
    memory = made("violin", 0)
    for store in (table, FakeMemories()):
        store.put(0, memory)
        store.forget(0, memory.memory_id, LOCATION)
        assert store.excerpt(0, memory.memory_id) is None


def rows_of(*memories: Memory) -> dict[bytes, bytes | None]:
    return {memory.memory_id.encode(): memory.model_dump_json().encode() for memory in memories}


def test_words_of_recovered_rows_are_written(words: SqliteLexicalIndex) -> None:
    memory = made("violin", 0)
    index_rows(words, 0, rows_of(memory))
    assert words.has(0, memory.memory_id)


@pytest.mark.parametrize("value", [b"forgotten", b"removed", None])
def test_words_of_a_recovered_tombstone_are_removed(words: SqliteLexicalIndex, value: bytes | None) -> None:
    memory = made("violin", 0)
    index_rows(words, 0, rows_of(memory))
    index_rows(words, 0, {memory.memory_id.encode(): value})
    assert not words.has(0, memory.memory_id)


def test_words_of_a_partition_that_is_not_open_are_opened(words: SqliteLexicalIndex) -> None:
    memory = made("violin", 0)
    index_rows(words, 1, rows_of(memory))
    assert words.has(1, memory.memory_id)


def test_incomplete_index_gets_no_words_of_recovered_rows(tmp_path: Path) -> None:
    """It is rebuilt from the table, where the rows are."""
    words, memory = SqliteLexicalIndex(PartitionDatabases(tmp_path)), made("violin", 0)
    words.drop(0)
    index_rows(words, 0, rows_of(memory))
    assert not words.has(0, memory.memory_id)
    words.databases.close_all()
