"""What tests of several kinds begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex


@pytest.fixture
def words(tmp_path: Path) -> Iterator[SqliteLexicalIndex]:
    """An empty word index that serves partition 0."""
    opened = SqliteLexicalIndex(tmp_path)
    opened.open(0)
    yield opened
    opened.close()
