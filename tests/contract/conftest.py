"""Fixtures of the contracts of several adapters."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.ports.indexes import VectorIndex
from tests.fakes.vector_indexes import KINDS, opened


@pytest.fixture(params=KINDS)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with opened(request.param, tmp_path) as opened_index:
        yield opened_index
