"""Fixtures of tests of several steps."""

import pytest

from tests.harnesses.requests import CHANNELS, COMMANDS, TURNS, RequestHarness


@pytest.fixture(params=CHANNELS)
def harness(request: pytest.FixtureRequest) -> RequestHarness:
    """A harness for each kind of channel."""
    return RequestHarness(CHANNELS[request.param])


@pytest.fixture
def turns() -> RequestHarness:
    """A harness for the channel of turns."""
    return RequestHarness(TURNS)


@pytest.fixture
def commands() -> RequestHarness:
    """A harness for the channel of commands, which are handled in order."""
    return RequestHarness(COMMANDS)
