"""The lexical index's document of a memory: its words, language, labels and importance. Pure.

The index compares `digest` with the stored one and reads `analysis` only if they differ: most writes of a record change
its status or place and not its text. The words of a long text are found once and kept until they are written, so they
can be found off the event loop, even in another process, before the turn is stored in its order. They are found piece
by piece, since the interpreter serves no other thread during one long match.
"""

import hashlib
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from threading import Lock
from typing import NamedTuple

from agents.rules.cues.labels import SentenceLabel, label_memory
from agents.rules.index.memory_columns import Trait
from agents.rules.text.languages import detect_language
from agents.rules.text.passages import lexical_text, passage_starts
from agents.rules.text.tokenizer import MAX_TERM_CHARS, fold, tokenize
from schemas.state.memories import Memory

MAX_INDEXED_TERMS = 20_000
"""Maximum different words of one memory in the index: more than a novel of 300 pages has. Each takes a row of the
index, and a turn of random words could bring half a million, all written in one go."""

LONG_TEXT_CHARS = 8192
"""A longer text is read off the event loop: its words and items take about 10 ms."""

LARGE_TEXT_CHARS = 65_536
"""A longer text has words of many megabytes: few are kept, and few such turns are written at a time."""

PIECE_CHARS = 4096
"""Characters of a long text read in one go, about 0.3 ms: the event loop waits that long whenever it needs the
interpreter, some hundred times in a request."""

_WORD_BEFORE, _WORD_AFTER = re.compile(r"\w+\Z"), re.compile(r"\w+")

LAST_PASSAGE_BIT = 62
"""The highest bit of a number that the index stores without a sign; passages beyond it, if any, share it."""

KEPT_LONG_TEXTS, KEPT_LARGE_TEXTS = 16, 2
"""Maximum texts whose words are cached: turns about to be written, and some earlier ones."""


class IndexedWords(NamedTuple):
    """Words in text order, with repetitions, one a line, and their number; the language by its index, 0 for none.

    `counts` is how often each word occurs, in the order of the text. `passages` has for each word a bit for every
    passage of the text in which it occurs; it is empty if the text is not cut.
    """

    length: int
    language: int
    lines: str
    counts: Mapping[str, int]
    passages: Mapping[str, int]


TextKey = tuple[str, tuple[int, ...]]
"""A text, and where its passages begin."""


class _KeptWords:
    """The words of the latest texts. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._words: OrderedDict[TextKey, IndexedWords] = OrderedDict()
        self._lock = Lock()

    def get(self, key: TextKey) -> IndexedWords | None:
        with self._lock:
            return self._words.get(key)

    def put(self, key: TextKey, words: IndexedWords) -> None:
        with self._lock:
            self._words[key] = words
            self._words.move_to_end(key)
            while len(self._words) > self._most:
                self._words.popitem(last=False)


_long, _large = _KeptWords(KEPT_LONG_TEXTS), _KeptWords(KEPT_LARGE_TEXTS)


def indexed_words(text: str, starts: tuple[int, ...] = ()) -> IndexedWords:
    """Return the words of a text to index. Words beyond `MAX_INDEXED_TERMS` different ones are left out.

    `starts` are the offsets of its passages, empty for an uncut text.
    """
    if not is_long(text):
        return _words_of(text, starts)
    words = _kept_with(text).get((text, starts))
    if words is None:
        words = _words_of(text, starts)
        keep_words(text, words, starts)
    return words


def keep_words(text: str, words: IndexedWords, starts: tuple[int, ...] = ()) -> None:
    """Store the words of a long text that were found elsewhere."""
    _kept_with(text).put((text, starts), words)


def _kept_with(text: str) -> _KeptWords:
    return _large if len(text) > LARGE_TEXT_CHARS else _long


def is_long(text: str) -> bool:
    """True if a text is to be read off the event loop."""
    return len(text) > LONG_TEXT_CHARS


def _words_of(text: str, starts: tuple[int, ...]) -> IndexedWords:
    counts: Counter[str] = Counter()
    passages: dict[str, int] = {}
    pieces = []
    for part, (start, end) in enumerate(pairwise((0, *starts[1:], len(text)))):
        bit = 1 << min(part, LAST_PASSAGE_BIT)
        for piece in _pieces(text[start:end]):
            pieces.append(tokenize(piece))
            counts.update(pieces[-1])
            if starts:
                passages.update((word, passages.get(word, 0) | bit) for word in pieces[-1])
    for part, start in enumerate(starts[1:], 1):
        before = _WORD_BEFORE.search(text, max(0, start - MAX_TERM_CHARS), start)
        after = _WORD_AFTER.match(text, start, start + MAX_TERM_CHARS)
        for word in tokenize(before.group() + after.group()) if before and after else []:
            # Of a text without spaces a passage may end within a word: what contains it is found by the whole word.
            if word not in counts:
                counts[word] = 1
                pieces.append([word])
                passages[word] = 1 << min(part - 1, LAST_PASSAGE_BIT) | 1 << min(part, LAST_PASSAGE_BIT)
    if len(counts) > MAX_INDEXED_TERMS:
        counts = Counter(dict(islice(counts.items(), MAX_INDEXED_TERMS)))
        pieces = [[word for word in piece if word in counts] for piece in pieces]
        passages = {word: bits for word, bits in passages.items() if word in counts}
    words = [word for piece in pieces for word in piece]
    lines = "\n".join("\n".join(piece) for piece in pieces if piece)
    return IndexedWords(len(words), detect_language(words), lines, counts, passages)


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


SATURATION_WORDS = 40
"""A longer text does not count as more informative."""

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def estimate_importance(stated: float | None, text: str, words: int) -> float:
    """Return `stated`, or an estimate of at most 0.5, lower for short texts and for questions.

    Measured on our own conversations: short turns and questions seldom answer a later question.
    """
    if stated is not None:
        return stated
    saturation = min(1.0, math.log1p(words) / math.log1p(SATURATION_WORDS))
    return 0.25 * saturation + (0.0 if is_question(text) else 0.25)


def is_question(text: str) -> bool:
    return text.rstrip("\"'\u201d\u2019) \n").endswith(_QUESTION_MARKS)


_CATEGORY_MARK = "\x1e"
"""Distinguishes categories from entities in the digest."""


class TextAnalysis(NamedTuple):
    """The terms, language and labels of a memory.

    Raise `SCHEMA_VERSION` in `streams/adapters/lexical/file.py` if their meaning changes.
    """

    length: int
    """Words, with repetitions."""
    lines: str
    """The words in text order, with repetitions, one a line."""
    counts: Mapping[str, int]
    """How often each word occurs."""
    passages: Mapping[str, int]
    """For each word of a long turn, a bit mask of the passages that contain it."""
    entities: list[str]
    """Different keys, sorted."""
    categories: list[str]
    """Different names, sorted."""
    language: int
    labels: SentenceLabel


@dataclass(frozen=True)
class LexicalDocument:
    """A memory with its data for the lexical index."""

    memory: Memory

    @cached_property
    def digest(self) -> bytes:
        """The hash of all inputs of `analysis`."""
        memory, kind = self.memory, (self.memory.item.kind or "") if self.memory.item else ""
        categories = (_CATEGORY_MARK + name for name in self._categories)
        source = "\n".join((memory.role or "", kind, self._text, *memory.entities, *categories))
        return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=12).digest()

    @cached_property
    def analysis(self) -> TextAnalysis:
        """The analysed text; takes time linear in the text."""
        words = indexed_words(self._text, passage_starts(self.memory))
        entities = sorted({entity_key(entity) for entity in self.memory.entities})
        labels = label_memory(self.memory)
        return TextAnalysis(
            words.length, words.lines, words.counts, words.passages, entities, self._categories, words.language, labels
        )

    @property
    def trait(self) -> Trait:
        """The attributes that the memory shares with others."""
        return Trait.of(self.memory)

    @property
    def is_superseded(self) -> bool:
        return self.memory.superseded_by is not None

    @property
    def awaits_understanding(self) -> bool:
        """True if a language model has not read the memory yet."""
        return self.memory.reading.status == "pending"

    def importance(self, length: int) -> float:
        """Return the importance of a memory with this number of words."""
        return estimate_importance(self.memory.importance, self.memory.text, length)

    @cached_property
    def _text(self) -> str:
        return lexical_text(self.memory)

    @cached_property
    def _categories(self) -> list[str]:
        return sorted({category.name for category in self.memory.item.categories}) if self.memory.item else []


def entity_key(entity: str) -> str:
    """Return the key of an entity: folded, on one line."""
    return " ".join(fold(entity).split())
