from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harnesses.remember import PARTITION, FullIndex, RememberHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[RememberHarness]:
    words = FullIndex(tmp_path)
    words.open(PARTITION)
    yield RememberHarness(words)
    words.close()
