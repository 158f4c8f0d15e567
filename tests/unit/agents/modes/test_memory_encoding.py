"""The vectors of a memory: of a long turn passage by passage."""

from typing import Any

import numpy as np

from agents.modes.vector_spaces import encode_memory
from agents.rules.text.passages import cut_passages
from schemas.models.vectors import Encoded, PassageVectors
from schemas.state.memories import Resource
from tests.builders.memories import made
from tests.fakes.embedder import FakeEmbedder

REPLY = "\n\n".join(f"Paragraph {number} says {'something useful ' * 15}about topic{number}." for number in range(4))
SHORT = "The deploy target is fly.io now."


async def encoded(text: str, **fields: Any) -> Encoded:
    return await encode_memory(FakeEmbedder("general", 8), made(text, **fields))


async def passages_of(text: str, **fields: Any) -> PassageVectors:
    found = (await encoded(text, **fields)).passages
    assert found is not None
    return found


async def test_a_short_turn_is_embedded_as_one_text() -> None:
    assert (await encoded(SHORT)).passages is None


async def test_a_long_turn_has_a_vector_for_each_passage() -> None:
    assert len(await passages_of(REPLY)) == len(cut_passages(REPLY))


async def test_a_passage_has_the_vector_of_its_text() -> None:
    start, end = cut_passages(REPLY)[1]
    alone = await encoded(REPLY[start:end])
    assert np.allclose((await passages_of(REPLY)).pooled[1], alone.pooled)


async def test_a_long_turn_has_the_mean_vector_of_its_passages() -> None:
    mean = (await passages_of(REPLY)).pooled.mean(axis=0)
    assert np.allclose((await encoded(REPLY)).pooled, mean, atol=1e-6)


async def test_the_token_vectors_of_a_long_turn_are_those_of_its_passages() -> None:
    found = await encoded(REPLY)
    assert found.passages is not None
    assert found.passages.token_counts.sum() == len(found.tokens)


async def test_texts_of_resources_are_a_passage_behind_the_others() -> None:
    picture = Resource(uri="a", media_type="image/png", text="a red kite")
    assert len(await passages_of(REPLY, resources=(picture,))) == len(cut_passages(REPLY)) + 1


async def test_a_summary_is_embedded_as_one_text() -> None:
    assert (await encoded(REPLY, origin="distilled")).passages is None
