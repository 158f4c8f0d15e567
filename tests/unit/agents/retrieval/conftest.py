import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.retrieval import RetrievalHarness


@pytest.fixture
def library(words: SqliteLexicalIndex) -> RetrievalHarness:
    return RetrievalHarness(words)
