"""The words of a text that the lexical index stores, and their language. Pure.

The words of a long text are found once and kept until they are written: so they can be found beside the event loop,
before the turn is stored in its order.
"""

from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import tokenize

MAX_INDEXED_TERMS = 20_000
"""Different words of one memory in the index: more than a novel of 300 pages has. Each takes a row of the index, and a
turn of random words could bring half a million, all written at a stretch."""

LONG_TEXT_CHARS = 65_536
"""A longer text is read beside the event loop: a content and the longest resource fit."""

KEPT_LONG_TEXTS = 2
"""Long texts whose words are kept: those of a turn that is about to be written, and of the one before."""


class IndexedWords(NamedTuple):
    """Words in text order, with repetitions; the language by its index, 0 for none."""

    words: list[str]
    language: int


def indexed_words(text: str) -> IndexedWords:
    """Return the words of a text to index. Words beyond `MAX_INDEXED_TERMS` different ones are left out."""
    return _words_of_long(text) if is_long(text) else _words_of(text)


def is_long(text: str) -> bool:
    """True if a text is to be read beside the event loop."""
    return len(text) > LONG_TEXT_CHARS


def _words_of(text: str) -> IndexedWords:
    words = _bounded(tokenize(text))
    return IndexedWords(words, detect_language(words))


_words_of_long = lru_cache(KEPT_LONG_TEXTS)(_words_of)


def _bounded(words: list[str]) -> list[str]:
    if len(words) <= MAX_INDEXED_TERMS:
        return words
    kept = set(islice(dict.fromkeys(words), MAX_INDEXED_TERMS))
    return [word for word in words if word in kept]
