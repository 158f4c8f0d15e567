"""Stem words with Snowball. Pure.

Enters: folded words, which have no accents, so that a question typed without accents finds a text with them. Stemmers
that rely on an accent cut less then; `agents.rules.index.vocabulary` compensates.
"""

from collections.abc import Sequence
from functools import cache

from py_rust_stemmers import SnowballStemmer

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES


def stems(words: Sequence[str], language: int) -> list[str]:
    """Return the stem of each word in the language with this index; in English where the language is unknown."""
    stemmed: list[str] = _stemmer(LANGUAGES[language or ENGLISH_INDEX]).stem_words(list(words))
    return stemmed


@cache
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)
