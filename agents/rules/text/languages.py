"""Detect the language of a text by its stop words. Pure.

Enters: words, folded by `agents.rules.text.tokenizer.fold`. Leaves: an index in `LANGUAGES`, or stop words. Guaranteed:
deterministic, in time linear in the words. Stop words are indexed like all others, and left out of a question unless
nothing else is left.
"""

from collections.abc import Iterable, Mapping, Sequence

from agents.rules.text.stop_words import (
    DANISH_STOP_WORDS,
    DUTCH_STOP_WORDS,
    ENGLISH_STOP_WORDS,
    FRENCH_STOP_WORDS,
    GERMAN_STOP_WORDS,
    ITALIAN_STOP_WORDS,
    NORWEGIAN_STOP_WORDS,
    PORTUGUESE_STOP_WORDS,
    RUSSIAN_STOP_WORDS,
    SPANISH_STOP_WORDS,
    SWEDISH_STOP_WORDS,
    TURKISH_STOP_WORDS,
)

UNKNOWN_LANGUAGE = 0
"""Index of a text without a stop word of any language."""

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
"""By Snowball's name of the language; on a tie the first language wins."""

LANGUAGES = tuple(STOP_WORDS)
"""Names by index. The lexical index stores the indexes: append new languages at the end."""

ENGLISH_INDEX = LANGUAGES.index("english")
"""The default where the language is unknown."""


def _index_by_stop_word() -> dict[str, tuple[int, ...]]:
    languages: dict[str, tuple[int, ...]] = {}
    for index, words in enumerate(STOP_WORDS.values()):
        for word in words:
            languages[word] = (*languages.get(word, ()), index)
    return languages


_LANGUAGES_BY_STOP_WORD = _index_by_stop_word()


def detect_language(words: Iterable[str]) -> int:
    """Return the index of the language with the most stop words in `words`; `UNKNOWN_LANGUAGE` without any."""
    votes = [0] * len(LANGUAGES)
    for word in words:
        for index in languages_with_stop_word(word):
            votes[index] += 1
    return votes.index(max(votes))


def languages_with_stop_word(word: str) -> tuple[int, ...]:
    """Return the indexes of the languages in which `word` is a stop word."""
    return _LANGUAGES_BY_STOP_WORD.get(word, ())


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """Return the stop words of the language of these folded words; the English ones where it is unknown."""
    return STOP_WORDS[LANGUAGES[detect_language(words) or ENGLISH_INDEX]]
