"""What the tests on a real broker share: one broker and one exported model for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exported_minilm import exported_minilm
from tests.live.broker import RunningBroker, running_broker
from tests.live.processes import Deployment, deployed


@pytest.fixture(scope="session")
def live_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker that nobody kills."""
    with running_broker(tmp_path_factory.mktemp("live-broker")) as running:
        yield running


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workers find the model."""
    return exported_minilm("int8", tmp_path_factory).parent


@pytest.fixture
def deployment(live_broker: RunningBroker, models: Path, tmp_path: Path) -> Iterator[Deployment]:
    """Topics, a group and data directories of the test's own."""
    with deployed(live_broker.bootstrap, tmp_path, models) as own:
        yield own
