"""The writer on a full disk, and the cached columns after changes of traits."""

from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import SCHEMA_VERSION, KeyCache, are_words_complete, ensure_words
from streams.adapters.lexical.sqlite_index import LexicalReader
from streams.adapters.lexical.writer import PartitionWriter
from streams.partition.database import PartitionDatabase
from tests.builders.memories import made


def halves(database: PartitionDatabase) -> tuple[PartitionWriter, LexicalReader]:
    ensure_words(database)
    cache, keys = MemoryColumnsCache(), KeyCache(database)
    return PartitionWriter(database, cache, keys), LexicalReader(database, cache, keys)


def test_calls_after_a_lost_transaction_are_unavailable(tmp_path: Path) -> None:
    database = PartitionDatabase(tmp_path / "words.sqlite")
    writer, reader = halves(database)
    writer.put(LexicalDocument(made("violin", 0)))
    database.commit()
    writer.put(LexicalDocument(made("harbour", 1)))
    assert reader.memory_columns("ana").documents == 2
    [pages] = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(Unavailable) as failure:
        writer.put(LexicalDocument(made(" ".join(f"word{n}" for n in range(5000)), 2)))
    assert failure.value.__cause__ is not None
    for call in (
        database.commit,
        lambda: writer.put(LexicalDocument(made("tram", 3))),
        lambda: database.set_offset("turns", 4),
    ):
        with pytest.raises(Unavailable):
            call()
    assert reader.memory_columns("ana").documents == 1
    database.close()


def kinds(reader: LexicalReader, boundary: str = "ana") -> dict[str, str]:
    columns = reader.memory_columns(boundary)
    modes = [kind.mode for kind in columns.kinds]
    return {item: modes[columns.columns.kinds[number]] for item, number in columns.number_of.items()}


def test_cached_columns_apply_changes_of_mode(tmp_path: Path) -> None:
    database = PartitionDatabase(tmp_path / "words.sqlite")
    writer, reader = halves(database)
    memories = [made("violin", number, mode="code") for number in range(3)]
    for memory in memories:
        writer.put(LexicalDocument(memory))
    cached = reader.memory_columns("ana")
    for mode in ("craft", "journal"):
        for memory in memories:
            writer.put(LexicalDocument(memory.model_copy(update={"mode": mode})))
            assert kinds(reader)[memory.memory_id] == mode
    assert reader.memory_columns("ana") is cached, "read once: a mode of 5,000 memories would be read 5,000 times"
    assert kinds(halves(database)[1]) == kinds(reader)
    database.close()


def test_ids_of_deleted_traits_are_not_reused(tmp_path: Path) -> None:
    database = PartitionDatabase(tmp_path / "words.sqlite")
    writer, reader = halves(database)
    stays, moves = made("violin", 0, mode="code"), made("violin", 1)
    writer.put(LexicalDocument(stays))
    for mode in ("craft", "code", "journal"):
        writer.put(LexicalDocument(moves.model_copy(update={"mode": mode})))
        assert kinds(reader) == {stays.memory_id: "code", moves.memory_id: mode}
    database.close()


def test_words_of_an_older_version_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "words.sqlite"
    database = PartitionDatabase(path)
    writer, _ = halves(database)
    writer.put(LexicalDocument(made("violin")))
    database.commit()
    database.execute("UPDATE offsets SET next_offset = ? WHERE log = 'lexical index'", (SCHEMA_VERSION - 1,))
    database.close()
    database = PartitionDatabase(path)
    _, reader = halves(database)
    assert reader.memory_columns("ana").documents == 0
    assert not are_words_complete(database)
    database.close()


def test_boundary_that_returns_is_read_under_its_new_id(tmp_path: Path) -> None:
    database = PartitionDatabase(tmp_path / "words.sqlite")
    writer, reader = halves(database)
    memory = made("violin")
    writer.put(LexicalDocument(memory))
    assert reader.memory_columns("ana").documents == 1
    writer.remove(memory.memory_id)
    writer.put(LexicalDocument(made("harbour", 1, user="bo")))
    assert reader.memory_columns("ana").documents == 0
    writer.put(LexicalDocument(memory))
    assert kinds(reader) == {memory.memory_id: memory.mode}
    assert reader.memory_columns("bo").documents == 1
    database.close()
