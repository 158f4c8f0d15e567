"""A removed memory leaves the log beside the database."""

import sqlite3
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.partition.database import database_path
from tests.builders.memories import made


def files_with(secret: bytes, directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if secret in path.read_bytes()]


@pytest.fixture
def index(tmp_path: Path) -> SqliteLexicalIndex:
    index = SqliteLexicalIndex(tmp_path)
    index.open(0)
    for number, text in enumerate(("the zebrafinch sings", "the harbour at night")):
        index.put(0, LexicalDocument(made(text, number)))
    index.commit(0)
    index.remove(0, made("the zebrafinch sings", 0).memory_id)
    index.commit(0)
    return index


def test_removed_terms_are_in_no_file(index: SqliteLexicalIndex, tmp_path: Path) -> None:
    assert files_with(b"zebrafinch", tmp_path), "the log beside the database has what was removed"
    index.truncate(0)
    assert files_with(b"zebrafinch", tmp_path) == []
    assert index.has(0, made("the harbour at night", 1).memory_id)


def test_index_in_use_is_unavailable(index: SqliteLexicalIndex, tmp_path: Path) -> None:
    reader = sqlite3.connect(database_path(tmp_path, 0), isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    index.put(0, LexicalDocument(made("a tram", 2)))
    index.commit(0)
    with pytest.raises(Unavailable):
        index.truncate(0)
    reader.close()
    index.truncate(0)
