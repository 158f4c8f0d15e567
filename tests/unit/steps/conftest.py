"""Fixtures of tests of several steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams import backoff
from tests.harnesses.remember_steps import RememberSteps
from tests.harnesses.requests import CHANNELS, COMMANDS, TURNS, RequestHarness


@pytest.fixture(params=CHANNELS)
def harness(request: pytest.FixtureRequest) -> RequestHarness:
    return RequestHarness(CHANNELS[request.param])


@pytest.fixture
def turns() -> RequestHarness:
    return RequestHarness(TURNS)


@pytest.fixture
def commands() -> RequestHarness:
    """A harness for the channel of commands, which are handled in order."""
    return RequestHarness(COMMANDS)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[RememberSteps]:
    """The steps around `Remember`, over a lexical index that is closed afterwards."""
    worker = RememberSteps(tmp_path)
    yield worker
    worker.words.close()


@pytest.fixture
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a millisecond before a retry."""
    monkeypatch.setattr(backoff, "INITIAL_BACKOFF_S", 0.001)
    monkeypatch.setattr(backoff, "MAX_BACKOFF_S", 0.001)
