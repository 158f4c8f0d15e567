"""What tests of one part of a worker begin with that are in more than one file."""

import pytest

from tests.harnesses.requests import CHANNELS, COMMANDS, TURNS, Served


@pytest.fixture(params=CHANNELS)
def served(request: pytest.FixtureRequest) -> Served:
    """Each kind of channel."""
    return Served(CHANNELS[request.param])


@pytest.fixture
def turns() -> Served:
    """The channel of turns."""
    return Served(TURNS)


@pytest.fixture
def commands() -> Served:
    """The channel of commands, which are handled in order."""
    return Served(COMMANDS)
