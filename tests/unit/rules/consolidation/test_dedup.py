"""Deduplication of items: same words in the same order, no near misses."""

import pytest

from agents.rules.consolidation.dedup import dedup_entry_of, find_duplicates
from schemas.state.memories import Item, Memory
from tests.builders.item_pairs import DOUBLES, NEAR_MISSES
from tests.builders.memories import made


def item(text: str, number: int = 0, claim: str | None = None) -> Memory:
    return made(text, number, origin="extracted", type="semantic", item=Item(kind="fact", claim=claim))


def merges(*items: Memory) -> list[tuple[str, str]]:
    text_of = {item.memory_id: item.text for item in items}
    pairs = find_duplicates(dedup_entry_of(item) for item in items)
    return [(text_of[newer.memory_id], text_of[older.memory_id]) for newer, older in pairs]


def test_duplicates_merge_into_the_oldest() -> None:
    oldest = item("I love the sea.", 1)
    others = [item("I really love the sea!", 3), item("I LOVE the sea", 2)]
    assert merges(*others, oldest) == [("I LOVE the sea", oldest.text), ("I really love the sea!", oldest.text)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I moved from Rome to Bonn.", "I moved from Bonn to Rome."),
        ("The shop opens at nine.", "The shop opens at ten."),
        ("I have a dog.", "I had a dog."),
        ("I like the green tea.", "I don't like the green tea."),
        ("The plants die early.", "The plants early."),
        ("So so.", "So so"),
    ],
)
def test_different_items_are_not_merged(first: str, second: str) -> None:
    assert merges(item(first, 1), item(second, 2)) == []


@pytest.mark.parametrize(("first", "second", "cosine"), NEAR_MISSES)
def test_near_misses_are_not_merged(first: str, second: str, cosine: float) -> None:
    assert cosine > 0.7
    assert merges(item(first, 1), item(second, 2)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I am a vegetarian.", "I'm vegetarian."),
        ("Answer me in German, please.", "Please answer me in German."),
        ("We've decided to use Kafka.", "We have decided to use Kafka."),
        ("I won't eat cilantro.", "I will not eat cilantro."),
        ("I cannot eat nuts.", "I can't eat nuts."),
        ("Bitte antworte mir auf Deutsch.", "Antworte mir bitte auf Deutsch."),
    ],
)
def test_contractions_and_fillers_are_ignored(first: str, second: str) -> None:
    assert merges(item(first, 1), item(second, 2)) == [(second, first)]


def test_no_cosine_threshold_separates_duplicates() -> None:
    """Why vectors don't decide: no duplicate has a higher cosine than every near miss."""
    assert max(cosine for *_, cosine in NEAR_MISSES) > max(cosine for *_, cosine in DOUBLES)


def test_articles_of_the_texts_language_are_ignored() -> None:
    assert merges(item("Ich mag den Kaffee in der Stadt.", 1), item("Ich mag Kaffee in der Stadt.", 2))


def test_different_claims_are_not_merged() -> None:
    assert merges(item("It is always on fire.", 1, "a"), item("It is always on fire!", 2, "b")) == []
