"""What tests of one agent begin with that are in more than one file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.commands import PARTITION, CommandsHarness
from tests.harnesses.embed import EmbedHarness
from tests.harnesses.turns import FullIndex, RememberHarness


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[RememberHarness]:
    """A keeper with nothing in it."""
    words = FullIndex(tmp_path)
    words.open(PARTITION)
    yield RememberHarness(words)
    words.close()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CommandsHarness]:
    """Commands over nothing."""
    words = SqliteLexicalIndex(tmp_path)
    words.open(PARTITION)
    yield CommandsHarness(words)
    words.close()


@pytest.fixture
def indexer() -> EmbedHarness:
    """An indexer that has written nothing."""
    return EmbedHarness()
