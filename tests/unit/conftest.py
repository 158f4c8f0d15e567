"""Fixtures of several unit tests."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model_server import ModelServer
from tests.harnesses.language_models import LanguageModelHarness


@pytest.fixture
async def rig() -> AsyncIterator[LanguageModelHarness]:
    """A model server and adapters over it, closed afterwards."""
    async with ModelServer() as server:
        rig = LanguageModelHarness(server)
        yield rig
        for models in rig.made:
            await models.close()
