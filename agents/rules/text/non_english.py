"""Detect texts in a language that an English embedding model can't read. Pure.

Guaranteed: deterministic, in time linear in the first `MAX_LANGUAGE_CHARS` characters; English and undecidable texts
are not foreign. Identifiers, numbers and code are ignored.
"""

import re
from functools import lru_cache

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, languages_with_stop_word
from agents.rules.text.tokenizer import fold

MAX_LANGUAGE_CHARS = 2048
"""Characters to scan: as many as are embedded of a turn."""

MIN_NON_ENGLISH_WORDS = 2
"""Required stop words and accented words of another language: one alone is a name, or chance."""

MIN_NON_ENGLISH_SHARE = 0.15
"""Their required share of all words: a third and more in prose, next to none in listings and logs."""

LANGUAGE_CACHE_SIZE = 1024
"""Cached results: each remembered text is checked several times on its way."""

_WORD = re.compile(r"(?<![\w'\u2019./:@-])[^\W\d_]{2,}(?![\w./:@-]\w)")
"""At least two letters that are not part of an identifier, a path, an address or a word with an apostrophe."""

_ACCENTED = re.compile(r"[\u00c0-\u024f]")
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_LATIN = re.compile(r"[^\W\d_\u0250-\u1dff\u1f00-\U0010ffff]")


@lru_cache(LANGUAGE_CACHE_SIZE)
def is_non_english(text: str) -> bool:
    """True if most letters are of another script, or another language has more stop words than English.

    Stop words of both languages count for neither. Words with accented letters count for the other language, but not
    against English.
    """
    head = text[:MAX_LANGUAGE_CHARS]
    if not head.isascii() and len(_NOT_LATIN.findall(head)) > len(_LATIN.findall(head)):
        return True
    words = _WORD.findall(fold(head))
    # Stop words by language: not shared and shared with English; then the number of English ones.
    foreign, shared, english = [0] * len(LANGUAGES), [0] * len(LANGUAGES), 0
    for languages in map(languages_with_stop_word, words):
        counts = shared if ENGLISH_INDEX in languages else foreign
        english += counts is shared
        for language in languages:
            counts[language] += 1
    most, language = max((count, index) for index, count in enumerate(foreign))
    accented = 0 if head.isascii() else sum(1 for word in _WORD.findall(head) if _ACCENTED.search(word))
    evidence = most + accented
    return (most > english - shared[language] or not english) and evidence >= max(
        MIN_NON_ENGLISH_WORDS, MIN_NON_ENGLISH_SHARE * len(words)
    )
