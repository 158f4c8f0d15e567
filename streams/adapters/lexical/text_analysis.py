"""How an analysed document is stored: as a row with its terms, and as postings."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple, Self

from agents.rules.index.lexical_document import LexicalDocument, entity_key

COUNT_BITS = 8
"""A posting is a memory's number above the term's frequency; BM25 does not tell 255 from more."""

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

    def postings(self, number: int) -> list[tuple[str, int]]:
        """Return each distinct term with the posting of the memory of this number."""
        counts = Counter(self.terms.split("\n")) if self.terms else Counter()
        return _postings(counts.items(), number)


def postings_of(document: LexicalDocument, number: int) -> list[tuple[str, int]]:
    """Return what `AnalyzedText.postings` does, from counts that a long text has already."""
    return _postings(chain(document.analysis.counts.items(), ((term, 1) for term in _marked_terms(document))), number)


def _postings(counts: Iterable[tuple[str, int]], number: int) -> list[tuple[str, int]]:
    return [(term, number << COUNT_BITS | min(count, COUNT_MASK)) for term, count in counts]


def _marked_terms(document: LexicalDocument) -> list[str]:
    """Return the different terms of entities and categories."""
    found = document.analysis
    return [*(ENTITY_PREFIX + key for key in found.entities), *map(category_term, found.categories)]


def entity_term(entity: str) -> str:
    """Return the term of an entity."""
    return ENTITY_PREFIX + entity_key(entity)


def category_term(name: str) -> str:
    """Return the term of a category: its name as written."""
    return CATEGORY_PREFIX + name
