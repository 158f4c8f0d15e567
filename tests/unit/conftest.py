"""What unit tests begin with that are in more than one file."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model_server import ModelServer
from tests.harnesses.language_models import LanguageModelHarness


@pytest.fixture
async def rig() -> AsyncIterator[LanguageModelHarness]:
    """A model server that answers; the models that ask it are closed in the end."""
    async with ModelServer() as server:
        rig = LanguageModelHarness(server)
        yield rig
        for models in rig.made:
            await models.close()
