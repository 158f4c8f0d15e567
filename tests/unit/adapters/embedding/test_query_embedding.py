"""The process of `general` classifies passages in the pass that embeds them."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from agents.rules.interaction.classifier import InteractionClassifier
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from streams.bootstrap.adapters import INTERACTION_MODEL
from tests.builders.exported_models import exported_minilm

TEXT = "Why does the login fail after five minutes?"


@pytest.fixture
async def reading(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> AsyncIterator[ProcessEmbedder]:
    """The model of `general` with the project's classifier."""
    folder = exported_minilm("int8", tmp_path_factory)
    local = LocalModel("all-MiniLM-L6-v2", folder, 384, "int8", max_tokens=256)
    started = ProcessEmbedder.start(local, tmp_path / "run", 1, classifier=INTERACTION_MODEL)
    yield started
    await started.close()


async def test_passage_comes_with_interaction_probabilities(reading: ProcessEmbedder) -> None:
    encoded = await reading.passage(TEXT)
    assert encoded.interaction_probabilities is not None
    classifier = InteractionClassifier.loads(INTERACTION_MODEL.read_bytes())
    assert np.allclose(encoded.interaction_probabilities, classifier.probabilities(TEXT, encoded.pooled), atol=1e-5)


async def test_query_comes_without_interaction_probabilities(reading: ProcessEmbedder) -> None:
    await reading.load()  # It may take longer than a query.
    assert (await reading.query(TEXT)).interaction_probabilities is None
