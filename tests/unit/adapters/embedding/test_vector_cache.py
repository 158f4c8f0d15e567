"""The cache of passage vectors: one pass for all uses of a text."""

import asyncio

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.models.vectors import Encoded
from streams.adapters.embedding.catalog.mode_embedders import VectorCache


class Passes:
    """Embeds a text as its length, and each letter as a token, once it is released; records every pass."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.let = asyncio.Event()
        self.let.set()
        self.failure: Exception | None = None

    async def __call__(self, text: str, prefix: str, boundary: str = "") -> Encoded:
        self.made.append((text, prefix))
        await self.let.wait()
        if self.failure:
            raise self.failure
        numbers = np.full(8, len(prefix + text), np.float32)
        return Encoded(numbers[:2], np.full((len(text), 2), np.float32(0.5)))


@pytest.fixture
def passes() -> Passes:
    return Passes()


async def test_repeated_text_is_not_embedded_again(passes: Passes) -> None:
    recent = VectorCache(passes)
    first, again = await recent.passage("abc", ""), await recent.passage("abc", "")
    assert passes.made == [("abc", "")]
    assert np.array_equal(first.pooled, [3, 3])
    assert np.array_equal(again.pooled, first.pooled)


async def test_cache_key_separates_prefix_and_text(passes: Passes) -> None:
    recent = VectorCache(passes)
    for text, prefix in (("bc", "a"), ("c", "ab"), ("abc", ""), ("abd", "")):
        await recent.passage(text, prefix)
    assert passes.made == [("bc", "a"), ("c", "ab"), ("abc", ""), ("abd", "")]


async def test_token_vectors_are_cached_with_the_pooled_one(passes: Passes) -> None:
    recent = VectorCache(passes)
    for _ in range(2):
        encoded = await recent.passage("abc", "")
        assert np.array_equal(encoded.tokens, np.full((3, 2), 0.5, np.float32))
    assert len(passes.made) == 1


async def test_changed_token_vectors_do_not_change_the_cache(passes: Passes) -> None:
    recent = VectorCache(passes)
    (await recent.passage("abc", "")).tokens[:] = 7
    assert np.array_equal((await recent.passage("abc", "")).tokens, np.full((3, 2), 0.5, np.float32))


async def test_cached_pooled_vector_is_a_read_only_copy(passes: Passes) -> None:
    encoded = await VectorCache(passes).passage("abc", "")
    assert encoded.pooled.base is None
    assert encoded.pooled.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        encoded.pooled[0] = 1


async def test_concurrent_callers_share_one_pass(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.let.clear()
    asked = [asyncio.create_task(recent.passage("abc", "")) for _ in range(5)]
    await asyncio.sleep(0)
    passes.let.set()
    assert len({id((await each).pooled) for each in asked}) == 1
    assert passes.made == [("abc", "")]


@pytest.mark.parametrize("leaving", [0, 1])
async def test_cancelled_caller_leaves_the_pass_to_the_others(passes: Passes, leaving: int) -> None:
    recent = VectorCache(passes)
    passes.let.clear()
    asked = [asyncio.create_task(recent.passage("abc", "")) for _ in range(2)]
    await asyncio.sleep(0)
    asked[leaving].cancel()
    await asyncio.wait([asked[leaving]])
    passes.let.set()
    assert np.array_equal((await asked[1 - leaving]).pooled, [3, 3])
    assert asked[leaving].cancelled()
    assert passes.made == [("abc", "")]


async def test_pass_without_waiting_callers_is_cached(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.let.clear()
    asked = asyncio.create_task(recent.passage("abc", ""))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    passes.let.set()
    await recent.passage("abc", "")
    assert passes.made == [("abc", "")]


async def test_failure_reaches_all_callers_and_is_not_cached(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.failure = Unavailable("away")
    failed = await asyncio.gather(*(recent.passage("abc", "") for _ in range(2)), return_exceptions=True)
    assert {type(failure) for failure in failed} == {Unavailable}
    assert len(passes.made) == 1
    passes.failure = None
    assert np.array_equal((await recent.passage("abc", "")).pooled, [3, 3])
    assert len(passes.made) == 2


async def test_least_recently_used_text_is_evicted(passes: Passes) -> None:
    recent = VectorCache(passes, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await recent.passage(text, "")
    assert [text for text, _ in passes.made] == ["a", "b", "c", "b"]


async def test_cache_is_bounded_in_bytes(passes: Passes) -> None:
    each = 8 + 2 * 10
    recent = VectorCache(passes, size=100, size_bytes=3 * each)
    texts = [letter * 10 for letter in "abcd"]
    for text in (*texts, *texts[1:], texts[0]):
        await recent.passage(text, "")
    assert [text for text, _ in passes.made] == [*texts, texts[0]]


async def test_text_larger_than_the_cache_is_embedded_but_not_cached(passes: Passes) -> None:
    recent = VectorCache(passes, size_bytes=50)
    for text in ("a", "b" * 100, "a", "a"):
        assert len((await recent.passage(text, "")).tokens) == len(text)
    assert [text for text, _ in passes.made] == ["a", "b" * 100, "a"]


async def test_text_with_a_lone_surrogate_is_cached(passes: Passes) -> None:
    recent = VectorCache(passes)
    for _ in range(2):
        await recent.passage("half \ud83d of a pair", "")
    assert len(passes.made) == 1
