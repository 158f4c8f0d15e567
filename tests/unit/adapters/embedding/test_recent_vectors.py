"""One pass serves everyone who needs a text's vector."""

import asyncio

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.vectors import Encoded
from streams.adapters.embedding.catalog.recent_vectors import VectorCache


class Passes:
    """Embeds a text as its length, and each letter as a token, when it is let; notes every pass."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.let = asyncio.Event()
        self.let.set()
        self.failure: Exception | None = None

    async def __call__(self, text: str, prefix: str) -> Encoded:
        self.made.append((text, prefix))
        await self.let.wait()
        if self.failure:
            raise self.failure
        numbers = np.full(8, len(prefix + text), np.float32)
        return Encoded(numbers[:2], np.full((len(text), 2), np.float32(0.5)))


@pytest.fixture
def passes() -> Passes:
    return Passes()


async def test_a_text_that_comes_again_costs_no_pass(passes: Passes) -> None:
    recent = VectorCache(passes)
    first, again = await recent.passage("abc", ""), await recent.passage("abc", "")
    assert passes.made == [("abc", "")]
    assert np.array_equal(first.pooled, [3, 3])
    assert np.array_equal(again.pooled, first.pooled)


async def test_another_text_or_prefix_is_another_pass_also_where_they_read_alike_together(passes: Passes) -> None:
    recent = VectorCache(passes)
    for text, prefix in (("bc", "a"), ("c", "ab"), ("abc", ""), ("abd", "")):
        await recent.passage(text, prefix)
    assert passes.made == [("bc", "a"), ("c", "ab"), ("abc", ""), ("abd", "")]


async def test_the_token_vectors_are_there_again_with_the_pooled_one(passes: Passes) -> None:
    recent = VectorCache(passes)
    for _ in range(2):
        encoded = await recent.passage("abc", "")
        assert np.array_equal(encoded.tokens, np.full((3, 2), 0.5, np.float32))
    assert len(passes.made) == 1


async def test_what_is_changed_by_one_who_was_given_token_vectors_is_not_seen_by_the_next(passes: Passes) -> None:
    recent = VectorCache(passes)
    (await recent.passage("abc", "")).tokens[:] = 7
    assert np.array_equal((await recent.passage("abc", "")).tokens, np.full((3, 2), 0.5, np.float32))


async def test_only_a_copy_of_the_pooled_vector_is_kept_and_nobody_can_change_it(passes: Passes) -> None:
    encoded = await VectorCache(passes).passage("abc", "")
    assert encoded.pooled.base is None
    assert encoded.pooled.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        encoded.pooled[0] = 1


async def test_callers_at_the_same_time_share_a_pass(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.let.clear()
    asked = [asyncio.create_task(recent.passage("abc", "")) for _ in range(5)]
    await asyncio.sleep(0)
    passes.let.set()
    assert len({id((await one).pooled) for one in asked}) == 1
    assert passes.made == [("abc", "")]


@pytest.mark.parametrize("leaving", [0, 1])
async def test_a_caller_that_is_cancelled_leaves_the_pass_to_the_others(passes: Passes, leaving: int) -> None:
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


async def test_a_pass_that_nobody_waits_for_any_more_is_kept(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.let.clear()
    asked = asyncio.create_task(recent.passage("abc", ""))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    passes.let.set()
    await recent.passage("abc", "")
    assert passes.made == [("abc", "")]


async def test_a_failure_reaches_all_who_wait_and_is_not_kept(passes: Passes) -> None:
    recent = VectorCache(passes)
    passes.failure = Unavailable("away")
    failed = await asyncio.gather(*(recent.passage("abc", "") for _ in range(2)), return_exceptions=True)
    assert {type(one) for one in failed} == {Unavailable}
    assert len(passes.made) == 1
    passes.failure = None
    assert np.array_equal((await recent.passage("abc", "")).pooled, [3, 3])
    assert len(passes.made) == 2


async def test_the_texts_used_last_are_kept(passes: Passes) -> None:
    recent = VectorCache(passes, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await recent.passage(text, "")
    assert [text for text, _ in passes.made] == ["a", "b", "c", "b"]


async def test_long_texts_leave_earlier_so_that_what_is_kept_has_an_end_in_bytes(passes: Passes) -> None:
    each = 8 + 2 * 10
    recent = VectorCache(passes, size=100, size_bytes=3 * each)
    texts = [letter * 10 for letter in "abcd"]
    for text in (*texts, *texts[1:], texts[0]):
        await recent.passage(text, "")
    assert [text for text, _ in passes.made] == [*texts, texts[0]]


async def test_a_text_that_is_larger_than_all_that_may_be_kept_is_embedded_and_not_kept(passes: Passes) -> None:
    recent = VectorCache(passes, size_bytes=50)
    for text in ("a", "b" * 100, "a", "a"):
        assert len((await recent.passage(text, "")).tokens) == len(text)
    assert [text for text, _ in passes.made] == ["a", "b" * 100, "a"]


async def test_a_text_with_half_a_pair_of_surrogates_is_a_text_like_any_other(passes: Passes) -> None:
    recent = VectorCache(passes)
    for _ in range(2):
        await recent.passage("half \ud83d of a pair", "")
    assert len(passes.made) == 1
