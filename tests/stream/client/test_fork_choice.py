"""Which turns of a user a fork gets."""

from typing import Any

import pytest

from operations.fork import Branch, ForkOptions, choose
from streams.settings import Settings
from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline


async def test_a_user_without_turns_in_an_empty_partition_is_named(pipeline: InMemoryPipeline) -> None:
    settings, client = Settings(), client_of(pipeline)
    user, fork = Branch("nobody", settings), Branch("trial", settings)
    of_pipeline: Any = client
    with pytest.raises(ValueError, match="nobody has no such turns"):
        await choose(ForkOptions("nobody", "trial"), user, fork, of_pipeline, read_after=-1)
