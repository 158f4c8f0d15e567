"""What a lexical index keeps when it is closed, killed, dropped, or has an unreadable file."""

import sqlite3
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.lexical_queries import found
from tests.builders.memories import made


def test_partitions_are_independent(words: SqliteLexicalIndex) -> None:
    words.open(1)
    words.put(0, LexicalDocument(made("violin")))
    words.commit(0)
    assert found(words, "violin", partition=1) == set()
    words.drop(1)
    assert found(words, "violin") != set()


@pytest.fixture
def dropped(words: SqliteLexicalIndex) -> SqliteLexicalIndex:
    """An index that was dropped twice, with an offset of its partition, and is open again."""
    words.put(0, LexicalDocument(made("violin")))
    words.databases.at(0).set_offset("turns", 7)
    words.commit(0)
    words.drop(0)
    words.drop(0)
    words.open(0)
    return words


def test_dropped_index_is_empty(dropped: SqliteLexicalIndex) -> None:
    assert found(dropped, "violin") == set()


def test_dropped_index_is_not_complete(dropped: SqliteLexicalIndex) -> None:
    assert not dropped.is_complete(0)


def test_drop_keeps_the_offsets_of_the_partition(dropped: SqliteLexicalIndex) -> None:
    assert dropped.databases.at(0).offset("turns") == 7


def test_new_index_is_complete(words: SqliteLexicalIndex) -> None:
    assert words.is_complete(0)


def test_index_that_was_completed_stays_complete(dropped: SqliteLexicalIndex) -> None:
    dropped.complete(0)
    dropped.open(0)
    assert dropped.is_complete(0)


def test_restart_keeps_committed_writes_only(words: SqliteLexicalIndex) -> None:
    safe, lost = made("violin", 0), made("harbour", 1)
    words.put(0, LexicalDocument(safe))
    words.commit(0)
    words.put(0, LexicalDocument(lost))
    words.open(0)
    assert found(words, "violin harbour") == {safe.memory_id}


def test_restart_keeps_committed_offsets_only(words: SqliteLexicalIndex) -> None:
    words.databases.at(0).set_offset("turns", 1)
    words.commit(0)
    words.databases.at(0).set_offset("turns", 2)
    words.open(0)
    assert words.databases.at(0).offset("turns") == 1


def test_closing_commits(tmp_path: Path) -> None:
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    words.put(0, LexicalDocument(made("violin")))
    words.close()
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    assert len(found(words, "violin")) == 1
    words.close()


@pytest.mark.parametrize("content", [b"no database at all " * 300, b""])
def test_corrupt_file_is_recreated(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "partition-0.sqlite").write_bytes(content)
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    words.put(0, LexicalDocument(made("violin")))
    assert len(found(words, "violin")) == 1
    words.close()


def test_file_of_another_version_is_recreated(tmp_path: Path) -> None:
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    words.put(0, LexicalDocument(made("violin")))
    words.databases.at(0).set_offset("turns", 1)
    words.close()
    with sqlite3.connect(tmp_path / "partition-0.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    words.open(0)
    assert found(words, "violin") == set()
    assert words.databases.at(0).offset("turns") is None
    words.close()
