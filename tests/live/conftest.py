"""Fixtures of live tests: one broker, one exported model and two tiny ones for all of them."""

import json
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from modestream_client import MemoryClient

from tests.builders.exported_models import english_models
from tests.builders.tiny_models import write_tiny_model
from tests.worlds.live.broker import RunningBroker, running_broker
from tests.worlds.live.processes import Deployment, deployed
from tests.worlds.live.stand_in import StandIn, connected, standing_in
from tests.worlds.live.typescript import build_client

TINY = {"tiny32": 32, "tiny48": 48}
"""Embedders besides the presets, with their dimensions."""


@pytest.fixture(scope="session")
def live_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("live-broker")) as running:
        yield running


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return english_models(tmp_path_factory)


@pytest.fixture
def deployment(live_broker: RunningBroker, models: Path, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with its own topics, group and data directories."""
    with deployed(live_broker.bootstrap, tmp_path, models) as own:
        yield own


@pytest.fixture(scope="module")
def shared_deployment(
    live_broker: RunningBroker, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """A deployment for all tests of a module: none of them kills its worker or changes a setting."""
    with deployed(live_broker.bootstrap, tmp_path_factory.mktemp("shared"), models) as shared:
        yield shared


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.fixture
def prefix() -> str:
    return f"test-{secrets.token_hex(4)}."


@pytest.fixture
async def service(live_broker: RunningBroker, prefix: str) -> AsyncIterator[StandIn]:
    async with standing_in(live_broker.bootstrap, prefix) as running:
        yield running


@pytest.fixture
async def memory(live_broker: RunningBroker, service: StandIn) -> AsyncIterator[MemoryClient]:
    async with connected(live_broker, service) as client:
        yield client


@pytest.fixture(scope="session")
def typescript_client() -> Path:
    """The folder of the TypeScript client, built; skips where it can't be."""
    return build_client()
