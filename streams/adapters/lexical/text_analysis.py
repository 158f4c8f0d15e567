"""What the word index stores of a memory's text: terms, entities, categories, language, marks, and a hash of it all."""

import hashlib
from collections import Counter
from typing import NamedTuple, Self

from agents.rules.cues.labels import label_memory
from agents.rules.text.embedding_text import lexical_text
from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import fold, tokenize
from schemas.memories import Memory

COUNT_BITS = 8
"""A posting is a memory's number above how often it has the term; 255 and more are the same to BM25."""

COUNT_MASK = (1 << COUNT_BITS) - 1
"""The bits of a posting that count."""

ENTITY_PREFIX = "\x1f"
"""Begins the terms that are entities; no word begins so."""

CATEGORY_PREFIX = "\x1e"
"""Begins the terms that are categories; neither a word nor an entity begins so."""

AFTER_PREFIXES = "\x20"
"""Comes in the order of texts after every entity and category, and before every word."""


class AnalyzedText(NamedTuple):
    """How many words, in which language, with which marks; the hash of what all was made from; terms, one a line."""

    length: int
    language: int
    marks: int
    digest: bytes
    terms: str

    @classmethod
    def of(cls, memory: Memory, before: Self | None) -> Self:
        """The words of a memory; `before` itself, when they are the same."""
        text = lexical_text(memory)
        under = sorted({category_term(one.name) for one in memory.item.categories}) if memory.item else []
        kind = (memory.item.kind or "") if memory.item else ""
        source = "\n".join((memory.role or "", kind, text, *memory.entities, *under)).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(source, digest_size=12).digest()
        if before is not None and before.digest == digest:
            return before
        words = tokenize(text)
        named = {entity_term(entity) for entity in memory.entities}
        spelled = "\n".join([*words, *sorted(named), *under])
        return cls(len(words), detect_language(words), int(label_memory(memory)), digest, spelled)

    @property
    def words(self) -> list[str]:
        """The words without entities and categories, with repetitions."""
        return self.terms.split("\n")[: self.length]

    def postings(self, number: int) -> list[tuple[str, int]]:
        """Each different term with the posting of the memory that has this number."""
        counts = Counter(self.terms.split("\n")) if self.terms else Counter()
        return [(term, number << COUNT_BITS | min(count, COUNT_MASK)) for term, count in counts.items()]


def entity_term(entity: str) -> str:
    """An entity as a term: folded, in one line."""
    return ENTITY_PREFIX + " ".join(fold(entity).split())


def category_term(name: str) -> str:
    """A category as a term: its name as it is written."""
    return CATEGORY_PREFIX + name
