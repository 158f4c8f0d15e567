"""The words of a text that the lexical index stores, and their language. Pure.

The words of a long text are found once and kept until they are written: so they can be found beside the event loop,
in another process too, before the turn is stored in its order. They are found piece by piece, since the interpreter
serves no other thread during one long match.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from threading import Lock
from typing import NamedTuple

from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import tokenize

MAX_INDEXED_TERMS = 20_000
"""Different words of one memory in the index: more than a novel of 300 pages has. Each takes a row of the index, and a
turn of random words could bring half a million, all written at a stretch."""

LONG_TEXT_CHARS = 8192
"""A longer text is read beside the event loop: its words and items take some 10 ms."""

LARGE_TEXT_CHARS = 65_536
"""A longer text has words of many megabytes: few are kept, and few such turns are written at a time."""

PIECE_CHARS = 4096
"""Characters of a long text that are read at a stretch, some 0.3 ms: the event loop waits that long whenever it needs
the interpreter, some hundred times in a request."""

KEPT_LONG_TEXTS, KEPT_LARGE_TEXTS = 16, 2
"""Texts whose words are kept: those of turns that are about to be written, and of some before."""


class IndexedWords(NamedTuple):
    """Words in text order, with repetitions, one a line, and their number; the language by its index, 0 for none.

    `counts` is how often each word occurs, in the order of the text.
    """

    length: int
    language: int
    lines: str
    counts: Mapping[str, int]


class _KeptWords:
    """The words of the latest texts. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._words: OrderedDict[str, IndexedWords] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str) -> IndexedWords | None:
        with self._lock:
            return self._words.get(text)

    def put(self, text: str, words: IndexedWords) -> None:
        with self._lock:
            self._words[text] = words
            self._words.move_to_end(text)
            while len(self._words) > self._most:
                self._words.popitem(last=False)


_long, _large = _KeptWords(KEPT_LONG_TEXTS), _KeptWords(KEPT_LARGE_TEXTS)


def indexed_words(text: str) -> IndexedWords:
    """Return the words of a text to index. Words beyond `MAX_INDEXED_TERMS` different ones are left out."""
    if not is_long(text):
        return _words_of(text)
    words = _kept_with(text).get(text)
    if words is None:
        words = _words_of(text)
        keep_words(text, words)
    return words


def keep_words(text: str, words: IndexedWords) -> None:
    """Keep the words of a long text, as they were found elsewhere."""
    _kept_with(text).put(text, words)


def _kept_with(text: str) -> _KeptWords:
    return _large if len(text) > LARGE_TEXT_CHARS else _long


def is_long(text: str) -> bool:
    """True if a text is to be read beside the event loop."""
    return len(text) > LONG_TEXT_CHARS


def _words_of(text: str) -> IndexedWords:
    counts: Counter[str] = Counter()
    pieces = []
    for piece in _pieces(text):
        pieces.append(tokenize(piece))
        counts.update(pieces[-1])
    if len(counts) > MAX_INDEXED_TERMS:
        counts = Counter(dict(islice(counts.items(), MAX_INDEXED_TERMS)))
        pieces = [[word for word in piece if word in counts] for piece in pieces]
    words = [word for piece in pieces for word in piece]
    lines = "\n".join("\n".join(piece) for piece in pieces if piece)
    return IndexedWords(len(words), detect_language(words), lines, counts)


def _pieces(text: str) -> Iterator[str]:
    """Cut a text at spaces, so that no word is cut; a run without spaces stays whole."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        space = text.find(" ", start + PIECE_CHARS)
        if space < 0:
            break
        yield text[start:space]
        start = space
    yield text[start:]
