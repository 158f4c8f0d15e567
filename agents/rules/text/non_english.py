"""Whether a text is in a language that an English model can't read. Pure.

Enters: a text. Leaves: yes or no. Guaranteed: the same text always gives the same answer, in time linear in it up to
`MAX_LANGUAGE_CHARS` characters; English, and what can't be told, is not foreign. Identifiers, numbers and code say nothing.
"""

import re
from functools import lru_cache

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, languages_with_stop_word
from agents.rules.text.tokenizer import fold

MAX_LANGUAGE_CHARS = 2048
"""Characters that are looked at: as many as are embedded of a turn."""

MIN_NON_ENGLISH_WORDS = 2
"""Stop words and accented ones that must speak for another language: one alone is a name, or chance."""

MIN_NON_ENGLISH_SHARE = 0.15
"""The share of all words that they must be: in prose it is a third and more, in listings and logs next to none."""

LANGUAGE_CACHE_SIZE = 1024
"""Texts whose answers are kept: one that is remembered is asked about several times on its way."""

_WORD = re.compile(r"(?<![\w'\u2019./:@-])[^\W\d_]{2,}(?![\w./:@-]\w)")
"""A run of two letters or more that is no part of an identifier, a path, an address, or a word with an apostrophe."""

_ACCENTED = re.compile(r"[\u00c0-\u024f]")
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_LATIN = re.compile(r"[^\W\d_\u0250-\u1dff\u1f00-\U0010ffff]")


@lru_cache(LANGUAGE_CACHE_SIZE)
def is_non_english(text: str) -> bool:
    """Whether the text is mostly in another script, or has more stop words of another language than of English.

    Words that both languages have speak for neither. Words with accented letters speak for another language, too, but
    say nothing against English.
    """
    read = text[:MAX_LANGUAGE_CHARS]
    if not read.isascii() and len(_NOT_LATIN.findall(read)) > len(_LATIN.findall(read)):
        return True
    words = _WORD.findall(fold(read))
    theirs, both, english = _stop_words(words)
    most, place = max((count, place) for place, count in enumerate(theirs))
    telling = most + _accented_words(read)
    return (most > english - both[place] or not english) and telling >= max(
        MIN_NON_ENGLISH_WORDS, MIN_NON_ENGLISH_SHARE * len(words)
    )


def _stop_words(words: list[str]) -> tuple[list[int], list[int], int]:
    """By place how many are stop words of that language alone, and of English too; how many are of English."""
    theirs, both, english = [0] * len(LANGUAGES), [0] * len(LANGUAGES), 0
    for places in map(languages_with_stop_word, words):
        counted = both if ENGLISH_INDEX in places else theirs
        english += counted is both
        for place in places:
            counted[place] += 1
    return theirs, both, english


def _accented_words(text: str) -> int:
    return 0 if text.isascii() else sum(1 for word in _WORD.findall(text) if _ACCENTED.search(word))
