"""The contract of the cross-encoder: one suite for the fake and for a model in a process of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.ports.models import CrossEncoder
from streams.adapters.embedding.catalog.local_cross_encoder import LocalCrossEncoder
from tests.builders.tiny_models import write_tiny_cross_encoder
from tests.fakes.cross_encoder import FakeCrossEncoder
from tests.harnesses.cross_encoder import packaged

WORDS = ("where", "lantern", "hall", "tea")


@pytest.fixture(params=["fake", "process"])
async def cross_encoder(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CrossEncoder]:
    if request.param == "fake":
        yield FakeCrossEncoder()
        return
    model = packaged(write_tiny_cross_encoder(tmp_path / "pairs", words=WORDS))
    real = LocalCrossEncoder(tmp_path / "run", 1, model=model)
    yield real
    await real.close()


async def test_text_with_the_words_of_the_question_scores_higher(cross_encoder: CrossEncoder) -> None:
    tea, lantern = await cross_encoder.scores("where lantern", ["tea tea", "lantern hall"])
    assert lantern > tea


async def test_scores_have_the_order_of_the_texts(cross_encoder: CrossEncoder) -> None:
    texts = ["lantern hall", "tea", "where lantern"]
    forth = await cross_encoder.scores("where lantern", texts)
    assert await cross_encoder.scores("where lantern", texts[::-1]) == forth[::-1]


async def test_no_texts_have_no_scores(cross_encoder: CrossEncoder) -> None:
    assert await cross_encoder.scores("where lantern", []) == []


@pytest.mark.parametrize("question", ["lantern " * 5000, "half \ud83d of a pair"])
async def test_any_question_and_text_is_read(cross_encoder: CrossEncoder, question: str) -> None:
    scores = await cross_encoder.scores(question, ["", "tea " * 5000, "東京 \ud83d"], boundary="ana")
    assert len(scores) == 3
