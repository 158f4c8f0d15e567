from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.commands import PARTITION, CommandsHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CommandsHarness]:
    """The commands, without memories and modes."""
    words = SqliteLexicalIndex(tmp_path)
    words.open(PARTITION)
    yield CommandsHarness(words)
    words.close()
