"""What the lexical index stores of a memory. Pure.

The index compares `digest` with the stored one and reads `analysis` only if they differ: most writes of a record change
its status or place and not its text.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from agents.rules.cues.labels import SentenceLabel, label_memory
from agents.rules.index.indexed_words import indexed_words
from agents.rules.index.traits import Trait
from agents.rules.text.passages import lexical_text, passage_starts
from agents.rules.text.tokenizer import fold
from schemas.state.memories import Memory

SATURATION_WORDS = 40
"""A longer text does not count as more informative."""

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def estimate_importance(given: float | None, text: str, words: int) -> float:
    """Return `given`, or an estimate of at most 0.5, lower for short texts and for questions.

    Measured on conversations that we own: short turns and questions seldom answer a later question.
    """
    if given is not None:
        return given
    saturation = min(1.0, math.log1p(words) / math.log1p(SATURATION_WORDS))
    return 0.25 * saturation + (0.0 if is_question(text) else 0.25)


def is_question(text: str) -> bool:
    """True if a text ends with a question mark."""
    return text.rstrip("\"'\u201d\u2019) \n").endswith(_QUESTION_MARKS)


_CATEGORY_MARK = "\x1e"
"""Tells categories from entities in the digest."""


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
    """For each word of a long turn, a bit for every passage with it."""
    entities: list[str]
    """Different keys, sorted."""
    categories: list[str]
    """Different names, sorted."""
    language: int
    labels: SentenceLabel


@dataclass(frozen=True)
class LexicalDocument:
    """A memory with all that the lexical index stores of it."""

    memory: Memory

    @cached_property
    def digest(self) -> bytes:
        """The hash of all that `analysis` depends on."""
        memory, kind = self.memory, (self.memory.item.kind or "") if self.memory.item else ""
        categories = (_CATEGORY_MARK + name for name in self._categories)
        source = "\n".join((memory.role or "", kind, self._text, *memory.entities, *categories))
        return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=12).digest()

    @cached_property
    def analysis(self) -> TextAnalysis:
        """The analysed text; takes time linear in the text."""
        found = indexed_words(self._text, passage_starts(self.memory))
        entities = sorted({entity_key(entity) for entity in self.memory.entities})
        labels = label_memory(self.memory)
        return TextAnalysis(
            found.length, found.lines, found.counts, found.passages, entities, self._categories, found.language, labels
        )

    @property
    def trait(self) -> Trait:
        """The attributes that the memory shares with others."""
        return Trait.of(self.memory)

    @property
    def is_superseded(self) -> bool:
        """True if another memory has replaced this one."""
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
        return sorted({one.name for one in self.memory.item.categories}) if self.memory.item else []


def entity_key(entity: str) -> str:
    """Return the key of an entity: folded, on one line."""
    return " ".join(fold(entity).split())
