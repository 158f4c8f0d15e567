"""Words without their endings, by language, as Snowball cuts them. Pure.

Enters: folded words. They have lost their accents, so that a question typed without them finds a text that has them;
a stemmer that looks for an accent cuts less then, and `agents.rules.index.char_ngrams` finds what it has left.
"""

from collections.abc import Sequence
from functools import cache

from py_rust_stemmers import SnowballStemmer

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES


def stems(words: Sequence[str], language: int) -> list[str]:
    """The stem of each word in the language with this place; in English where the language is unknown."""
    found: list[str] = _stemmer(LANGUAGES[language or ENGLISH_INDEX]).stem_words(list(words))
    return found


@cache
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)
