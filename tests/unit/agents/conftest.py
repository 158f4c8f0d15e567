"""What tests of one agent begin with that are in more than one file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.commands import PARTITION, Governing
from tests.harnesses.embed import Indexer
from tests.harnesses.turns import BreakableWords, Kept


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """A keeper with nothing in it."""
    words = BreakableWords(tmp_path)
    words.open(PARTITION)
    yield Kept(words)
    words.close()


@pytest.fixture
def governing(tmp_path: Path) -> Iterator[Governing]:
    """Commands over nothing."""
    words = SqliteLexicalIndex(tmp_path)
    words.open(PARTITION)
    yield Governing(words)
    words.close()


@pytest.fixture
def indexer() -> Indexer:
    """An indexer that has written nothing."""
    return Indexer()
