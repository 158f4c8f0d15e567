import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.contexts import ContextHarness


@pytest.fixture
def library(words: SqliteLexicalIndex) -> ContextHarness:
    return ContextHarness(words)
