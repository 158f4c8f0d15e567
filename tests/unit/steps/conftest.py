"""What tests of one part of a worker begin with that are in more than one file."""

import pytest

from tests.harnesses.requests import CHANNELS, COMMANDS, TURNS, RequestHarness


@pytest.fixture(params=CHANNELS)
def served(request: pytest.FixtureRequest) -> RequestHarness:
    """Each kind of channel."""
    return RequestHarness(CHANNELS[request.param])


@pytest.fixture
def turns() -> RequestHarness:
    """The channel of turns."""
    return RequestHarness(TURNS)


@pytest.fixture
def commands() -> RequestHarness:
    """The channel of commands, which are handled in order."""
    return RequestHarness(COMMANDS)
