"""What unit tests begin with that are in more than one file."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model_server import ModelServer
from tests.harnesses.language_models import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A model server that answers; the models that ask it are closed in the end."""
    async with ModelServer() as server:
        rig = Rig(server)
        yield rig
        for models in rig.made:
            await models.close()
