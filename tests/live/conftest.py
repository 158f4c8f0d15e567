"""What the tests on a real broker share: one broker, one exported model and two tiny ones for all of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exported_models import exported_minilm
from tests.live.broker import RunningBroker, running_broker
from tests.live.processes import Deployment, deployed
from tests.tiny_models import write_tiny_model

TINY = {"tiny32": 32, "tiny48": 48}
"""Embedders beside the presets, with their dimensions."""


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


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of `TINY`."""
    folder = tmp_path_factory.mktemp("tiny")
    for number, (name, dim) in enumerate(TINY.items()):
        write_tiny_model(folder / name, dim, seed=number)
    return folder


@pytest.fixture
def with_embedders(deployment: Deployment, tiny_models: Path) -> Deployment:
    """A deployment whose modes may name the embedders of `TINY`."""
    configured = {name: {"path": str(tiny_models / name), "dim": dim} for name, dim in TINY.items()}
    deployment.more["EMBEDDERS"] = json.dumps(configured)
    return deployment
