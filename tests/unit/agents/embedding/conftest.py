import pytest

from tests.harnesses.embed import EmbedHarness


@pytest.fixture
def harness() -> EmbedHarness:
    """`Embed` over an empty index."""
    return EmbedHarness()
