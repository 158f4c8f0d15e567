"""Which items are one: those that say the same in the same order, and nothing that merely sounds alike."""

import pytest

from agents.rules.consolidation.dedup import dedup_entry_of, find_duplicates
from schemas.memories import Item, Memory
from tests.builders.item_pairs import DOUBLES, NEAR_MISSES
from tests.builders.memories import made


def item(text: str, number: int = 0, claim: str | None = None) -> Memory:
    return made(text, number, origin="extracted", type="semantic", item=Item(kind="fact", claim=claim))


def merged(*items: Memory) -> list[tuple[str, str]]:
    """Which texts go into which."""
    text_of = {one.memory_id: one.text for one in items}
    pairs = find_duplicates(dedup_entry_of(one) for one in items)
    return [(text_of[newer.memory_id], text_of[older.memory_id]) for newer, older in pairs]


def test_what_says_the_same_goes_into_the_oldest() -> None:
    oldest = item("I love the sea.", 1)
    others = [item("I really love the sea!", 3), item("I LOVE the sea", 2)]
    assert merged(*others, oldest) == [("I LOVE the sea", oldest.text), ("I really love the sea!", oldest.text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I moved from Rome to Bonn.", "I moved from Bonn to Rome."),
        ("The shop opens at nine.", "The shop opens at ten."),
        ("I have a dog.", "I had a dog."),
        ("I like the green tea.", "I don't like the green tea."),
        ("The plants die early.", "The plants early."),
        ("So so.", "So so"),
    ],
)
def test_what_says_something_else_stays(one: str, other: str) -> None:
    assert merged(item(one, 1), item(other, 2)) == []


@pytest.mark.parametrize(("one", "other", "cosine"), NEAR_MISSES)
def test_what_is_merely_near_stays(one: str, other: str, cosine: float) -> None:
    assert cosine > 0.7
    assert merged(item(one, 1), item(other, 2)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I am a vegetarian.", "I'm vegetarian."),
        ("Answer me in German, please.", "Please answer me in German."),
        ("We've decided to use Kafka.", "We have decided to use Kafka."),
        ("I won't eat cilantro.", "I will not eat cilantro."),
        ("I cannot eat nuts.", "I can't eat nuts."),
        ("Bitte antworte mir auf Deutsch.", "Antworte mir bitte auf Deutsch."),
    ],
)
def test_how_a_word_is_written_and_courtesy_do_not_count(one: str, other: str) -> None:
    assert merged(item(one, 1), item(other, 2)) == [(other, one)]


def test_no_cosine_tells_doubles_from_near_misses() -> None:
    """Why vectors are not asked: above all that is merely near there is nothing that says the same."""
    assert max(cosine for *_, cosine in NEAR_MISSES) > max(cosine for *_, cosine in DOUBLES)


def test_articles_of_the_language_that_is_spoken_do_not_count() -> None:
    assert merged(item("Ich mag den Kaffee in der Stadt.", 1), item("Ich mag Kaffee in der Stadt.", 2))


def test_another_claim_is_another_item() -> None:
    assert merged(item("It is always on fire.", 1, "a"), item("It is always on fire!", 2, "b")) == []
