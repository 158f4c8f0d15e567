"""Near-duplicate detection."""

import pytest

from agents.rules.text.shingles import ShingleIndex

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
