"""Detect the language of a text by its stop words. Pure.

Enters: words, folded by `agents.rules.text.tokenizer.fold`. Leaves: an index in `LANGUAGES`, or stop words. Guaranteed:
deterministic, in time linear in the words. Stop words are indexed like all others, and left out of a question unless
nothing else is left.
"""

from collections.abc import Iterable, Sequence

from agents.rules.text.stop_words import STOP_WORDS

UNKNOWN_LANGUAGE = 0
"""Index of a text without a stop word of any language."""

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
