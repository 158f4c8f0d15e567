"""Damage of the lexical index's file: it is set aside, at opening and in use."""

import sqlite3
from functools import partial
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.damaged_stores import StoresSetAside
from tests.builders.memories import made


def _damage(file: Path) -> None:
    """Overwrite the second half of the file."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = file.stat().st_size
    with file.open("r+b") as content:
        content.seek(size // 2)
        content.write(b"\xa5" * (size - size // 2))


def _index(directory: Path, ended: list[int]) -> SqliteLexicalIndex:
    index = SqliteLexicalIndex(directory / "partitions", lambda: ended.append(1))
    index.open(0)
    return index


def test_damage_that_shows_in_use_sets_the_file_aside_and_ends_the_process(tmp_path: Path) -> None:
    ended: list[int] = []
    index = _index(tmp_path, ended)
    memories = [made(f"word{number}", number) for number in range(300)]
    for memory in memories:
        index.put(0, LexicalDocument(memory))
    index.databases.at(0).set_offset("turns", 300)
    index.close()
    _damage(tmp_path / "partitions" / "partition-0.sqlite")
    index = _index(tmp_path, ended)
    with pytest.raises(Unavailable):
        index.postings(0, memories[0].index_name, [f"word{number}" for number in range(300)])
    assert ended == [1]
    assert [name.startswith("partition-0.sqlite.damaged-") for name in StoresSetAside(tmp_path).names()] == [True]
    fresh = _index(tmp_path, ended)
    assert fresh.databases.at(0).offset("turns") is None
    assert not fresh.has(0, "memory")


def test_damage_at_opening_and_a_directory_in_place_of_the_file_are_set_aside(tmp_path: Path) -> None:
    words, ended = tmp_path / "partitions", [0]
    words.mkdir()
    (words / "partition-0.sqlite").write_bytes(b"garbage" * 4096)
    _index(tmp_path, ended).close()
    (words / "partition-0.sqlite").unlink()
    (words / "partition-0.sqlite").mkdir()
    _index(tmp_path, ended).close()
    assert len(StoresSetAside(tmp_path).names()) == 1
    assert ended == [0]


def test_file_that_cannot_be_opened_for_another_reason_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A locked file is waited for.
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.1))
    ended: list[int] = []
    _index(tmp_path, ended).close()
    file = tmp_path / "partitions" / "partition-0.sqlite"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    inode = file.stat().st_ino
    with pytest.raises(Unavailable):
        _index(tmp_path, ended)
    assert file.stat().st_ino == inode
    other.close()
