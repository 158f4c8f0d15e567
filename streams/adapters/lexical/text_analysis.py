"""The stored form of an analysed document: a row with its terms, and postings."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from agents.rules.index.lexical_document import LexicalDocument, entity_key

COUNT_BITS = 8
"""A posting is a memory's number above the term's frequency, at most 255: BM25 does not distinguish more."""

COUNT_MASK = (1 << COUNT_BITS) - 1

ENTITY_PREFIX, CATEGORY_PREFIX, AFTER_PREFIXES = "\x1f", "\x1e", "\x20"
"""The first characters of the terms of entities and of categories; the last sorts between these and all words."""


class AnalyzedText(NamedTuple):
    """The text columns of a row. `length` counts words; `terms` has one term a line: words, entities, categories."""

    length: int
    language: int
    marks: int
    digest: bytes
    terms: str

    @classmethod
    def of(cls, document: LexicalDocument, before: Self | None) -> Self:
        """Return the columns of a document; `before` itself if its text is unchanged."""
        if before is not None and before.digest == document.digest:
            return before
        found = document.analysis
        terms = "\n".join([*([found.lines] if found.length else ()), *_marked_terms(document)])
        return cls(found.length, found.language, int(found.labels), document.digest, terms)

    def entries(self, number: int) -> list[tuple[str, int]]:
        """Return each distinct term with the entry of the memory of this number."""
        counts = Counter(self.terms.split("\n")) if self.terms else Counter()
        return [(term, _entry(number, count)) for term, count in counts.items()]


def postings_of(document: LexicalDocument, number: int) -> Iterable[tuple[str, int, int]]:
    """Yield each distinct term with the entry of the memory of this number, and the term's passages."""
    analysis = document.analysis
    for term, count in analysis.counts.items():
        yield term, _entry(number, count), analysis.passages.get(term, 0)
    for term in _marked_terms(document):
        yield term, _entry(number, 1), 0


def _entry(number: int, count: int) -> int:
    return number << COUNT_BITS | min(count, COUNT_MASK)


def _marked_terms(document: LexicalDocument) -> list[str]:
    found = document.analysis
    return [*(ENTITY_PREFIX + key for key in found.entities), *map(category_term, found.categories)]


def entity_term(entity: str) -> str:
    return ENTITY_PREFIX + entity_key(entity)


def category_term(name: str) -> str:
    """Return the term of a category: its name as written."""
    return CATEGORY_PREFIX + name
