"""The language of a text, told by its stop words. Pure.

Enters: folded words, as `agents.rules.text.tokenizer` folds. Leaves: a place in `LANGUAGES`. Guaranteed: the same words always
give the same language, in time linear in them.
"""

from collections.abc import Iterable, Mapping

from agents.rules.text.stop_words_eastern import RUSSIAN, TURKISH
from agents.rules.text.stop_words_germanic import DANISH, DUTCH, ENGLISH, GERMAN, NORWEGIAN, SWEDISH
from agents.rules.text.stop_words_romance import FRENCH, ITALIAN, PORTUGUESE, SPANISH

UNKNOWN = 0
"""The place of a text whose words are a stop word of no language."""

STOP_WORDS: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    "english": frozenset(ENGLISH.split()),
    "german": frozenset(GERMAN.split()),
    "spanish": frozenset(SPANISH.split()),
    "french": frozenset(FRENCH.split()),
    "portuguese": frozenset(PORTUGUESE.split()),
    "italian": frozenset(ITALIAN.split()),
    "dutch": frozenset(DUTCH.split()),
    "swedish": frozenset(SWEDISH.split()),
    "danish": frozenset(DANISH.split()),
    "norwegian": frozenset(NORWEGIAN.split()),
    "russian": frozenset(RUSSIAN.split()),
    "turkish": frozenset(TURKISH.split()),
}
"""By language, as Snowball names it; of two that are equally likely the first is taken."""

LANGUAGES = tuple(STOP_WORDS)
"""The languages by their places, which are kept in the word index: new ones are added at the end."""

ENGLISH_PLACE = LANGUAGES.index("english")
"""Taken where nothing else is known."""


def _spoken() -> dict[str, tuple[int, ...]]:
    """For each stop word the places of the languages that have it."""
    places: dict[str, tuple[int, ...]] = {}
    for place, words in enumerate(STOP_WORDS.values()):
        for word in words:
            places[word] = (*places.get(word, ()), place)
    return places


_SPOKEN = _spoken()


def language_of(words: Iterable[str]) -> int:
    """The place of the language that most of these words are stop words of, `UNKNOWN` when none is of any."""
    votes = [0] * len(LANGUAGES)
    for word in words:
        for place in spoken_in(word):
            votes[place] += 1
    return votes.index(max(votes))


def spoken_in(word: str) -> tuple[int, ...]:
    """The places of the languages that a word is a stop word of."""
    return _SPOKEN.get(word, ())
