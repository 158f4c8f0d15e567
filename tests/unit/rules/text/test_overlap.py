"""Stems of sentences, and what is cached of them."""

import pytest

from agents.rules.text import overlap
from agents.rules.text.overlap import MAX_CACHED_CHARS, ShingleIndex, content_stems


def test_stems_of_long_sentences_are_not_cached() -> None:
    long = "harbour " * (MAX_CACHED_CHARS // 8 + 1)
    cached = overlap._cached_stems.cache_info().currsize
    assert content_stems(long) == content_stems("the harbours") == {"harbour"}
    assert content_stems(long) is not content_stems(long)
    assert overlap._cached_stems.cache_info().currsize <= cached + 1


KEPT = "The login page times out after five minutes, Ana says, and the cache was not the reason at all."


@pytest.fixture
def covered() -> ShingleIndex:
    covered = ShingleIndex()
    covered.add(KEPT)
    return covered


@pytest.mark.parametrize(
    "text",
    [
        KEPT,
        KEPT.upper().replace("ANA", "Ana").lower().replace("ana", "Ana"),
        f"So: {KEPT}",
        "The login page times out after five minutes, Ana says.",
        "the cache was not the reason at all",
    ],
)
def test_near_duplicates_and_excerpts_are_covered(covered: ShingleIndex, text: str) -> None:
    assert covered.covers(text)


@pytest.mark.parametrize(
    "text",
    [
        KEPT.replace("five", "15"),
        KEPT.replace("Ana", "Ben"),
        KEPT.replace("Ana says, and", "Ana says, and never again, and"),
        f"{KEPT} The database was, on the other hand, and we restarted it.",
        "The login page is back.",
        "Something else entirely was the topic of that day.",
    ],
    ids=["a number", "a name", "a negation", "more", "short", "else"],
)
def test_different_numbers_names_and_negations_are_not_covered(covered: ShingleIndex, text: str) -> None:
    assert not covered.covers(text)


def test_a_short_text_is_never_covered() -> None:
    covered = ShingleIndex()
    covered.add("Yes, do it.")
    assert not covered.covers("Yes, do it.")


def test_two_texts_together_do_not_cover_a_third(covered: ShingleIndex) -> None:
    covered.add("We talked about the weather on the island for an hour.")
    assert not covered.covers(f"{KEPT} We talked about the weather on the island for an hour.")


def test_texts_that_differ_in_a_number_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    index = ShingleIndex()
    for number in range(20):
        index.add(f"{KEPT} Version {number}.")
    monkeypatch.setattr(overlap, "_shingles", lambda _: pytest.fail("counted"))
    assert not index.covers(f"{KEPT} Version 20.")


def test_texts_that_were_compared_before_are_left_out(covered: ShingleIndex) -> None:
    covered.add("Something else entirely was the topic of that day.")
    assert covered.covers(KEPT, since=0)
    assert not covered.covers(KEPT, since=1)


def test_counting_ends_at_its_limit(covered: ShingleIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    assert covered.covers(KEPT)
    monkeypatch.setattr(overlap, "MAX_COUNTED_SHINGLES", 1)
    assert not covered.covers(KEPT)
