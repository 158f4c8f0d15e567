"""What tests of several kinds begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteWords


@pytest.fixture
def words(tmp_path: Path) -> Iterator[SqliteWords]:
    """An empty word index that serves partition 0."""
    opened = SqliteWords(tmp_path)
    opened.open(0)
    yield opened
    opened.close()
