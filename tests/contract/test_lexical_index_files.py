"""What a lexical index keeps when it is closed, killed, dropped, or has an unreadable file."""

import sqlite3
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores.tables import LexicalStore
from tests.builders.lexical_queries import found
from tests.builders.memories import made


def test_partitions_are_independent(words: LexicalStore) -> None:
    words.open(1)
    words.put(0, LexicalDocument(made("violin")))
    words.commit(0)
    assert found(words, "violin", partition=1) == set()
    words.drop(1)
    assert found(words, "violin") != set()


def test_dropped_partition_is_empty(words: LexicalStore) -> None:
    words.put(0, LexicalDocument(made("violin")))
    words.set_applied(0, "turns", 7)
    words.commit(0)
    words.drop(0)
    words.drop(0)
    words.open(0)
    assert found(words, "violin") == set()
    assert words.applied(0) == {}


def test_progress_is_kept_by_topic(words: LexicalStore) -> None:
    words.set_applied(0, "turns", 7)
    words.set_applied(0, "embedded", 3)
    words.set_applied(0, "turns", 8)
    assert words.applied(0) == {"turns": 8, "embedded": 3}


def test_restart_keeps_committed_writes_and_progress_only(tmp_path: Path) -> None:
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    safe, lost = made("violin", 0), made("harbour", 1)
    words.put(0, LexicalDocument(safe))
    words.set_applied(0, "turns", 1)
    words.commit(0)
    words.put(0, LexicalDocument(lost))
    words.set_applied(0, "turns", 2)
    words.open(0)
    assert found(words, "violin harbour") == {safe.memory_id}
    assert words.applied(0) == {"turns": 1}
    words.close()


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
    (tmp_path / "words-0.sqlite").write_bytes(content)
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    words.put(0, LexicalDocument(made("violin")))
    assert len(found(words, "violin")) == 1
    words.close()


def test_file_of_another_version_is_recreated(tmp_path: Path) -> None:
    words = SqliteLexicalIndex(tmp_path)
    words.open(0)
    words.put(0, LexicalDocument(made("violin")))
    words.set_applied(0, "turns", 1)
    words.close()
    with sqlite3.connect(tmp_path / "words-0.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    words.open(0)
    assert found(words, "violin") == set()
    assert words.applied(0) == {}
    words.close()
