"""The language of a text, told by its stop words. Pure.

Enters: folded words, as `agents.rules.text.tokenizer` folds. Leaves: a place in `LANGUAGES`. Guaranteed: the same words always
give the same language, in time linear in them.
"""

from collections.abc import Iterable, Mapping

from agents.rules.text.stop_words_eastern import RUSSIAN_STOP_WORDS, TURKISH_STOP_WORDS
from agents.rules.text.stop_words_germanic import (
    DANISH_STOP_WORDS,
    DUTCH_STOP_WORDS,
    ENGLISH_STOP_WORDS,
    GERMAN_STOP_WORDS,
    NORWEGIAN_STOP_WORDS,
    SWEDISH_STOP_WORDS,
)
from agents.rules.text.stop_words_romance import (
    FRENCH_STOP_WORDS,
    ITALIAN_STOP_WORDS,
    PORTUGUESE_STOP_WORDS,
    SPANISH_STOP_WORDS,
)

UNKNOWN_LANGUAGE = 0
"""The place of a text whose words are a stop word of no language."""

STOP_WORDS: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    "english": frozenset(ENGLISH_STOP_WORDS.split()),
    "german": frozenset(GERMAN_STOP_WORDS.split()),
    "spanish": frozenset(SPANISH_STOP_WORDS.split()),
    "french": frozenset(FRENCH_STOP_WORDS.split()),
    "portuguese": frozenset(PORTUGUESE_STOP_WORDS.split()),
    "italian": frozenset(ITALIAN_STOP_WORDS.split()),
    "dutch": frozenset(DUTCH_STOP_WORDS.split()),
    "swedish": frozenset(SWEDISH_STOP_WORDS.split()),
    "danish": frozenset(DANISH_STOP_WORDS.split()),
    "norwegian": frozenset(NORWEGIAN_STOP_WORDS.split()),
    "russian": frozenset(RUSSIAN_STOP_WORDS.split()),
    "turkish": frozenset(TURKISH_STOP_WORDS.split()),
}
"""By language, as Snowball names it; of two that are equally likely the first is taken."""

LANGUAGES = tuple(STOP_WORDS)
"""The languages by their places, which are kept in the word index: new ones are added at the end."""

ENGLISH_INDEX = LANGUAGES.index("english")
"""Taken where nothing else is known."""


def _spoken() -> dict[str, tuple[int, ...]]:
    """For each stop word the places of the languages that have it."""
    places: dict[str, tuple[int, ...]] = {}
    for place, words in enumerate(STOP_WORDS.values()):
        for word in words:
            places[word] = (*places.get(word, ()), place)
    return places


_SPOKEN = _spoken()


def detect_language(words: Iterable[str]) -> int:
    """The place of the language that most of these words are stop words of, `UNKNOWN_LANGUAGE` when none is of any."""
    votes = [0] * len(LANGUAGES)
    for word in words:
        for place in languages_with_stop_word(word):
            votes[place] += 1
    return votes.index(max(votes))


def languages_with_stop_word(word: str) -> tuple[int, ...]:
    """The places of the languages that a word is a stop word of."""
    return _SPOKEN.get(word, ())
