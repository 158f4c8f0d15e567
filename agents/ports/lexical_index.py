"""The lexical index of one partition: terms, entities and columns of every memory, derived from the records.

Statistics are those of one boundary: memories of other boundaries change no score. Calls are synchronous and belong
to one thread; a write is visible to every later call. Raises `Unavailable` when storage fails; that call did nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import Postings
from schemas.state.memories import VectorLocation


class LexicalIndex(Protocol):
    """Reads the index."""

    def has(self, memory_id: str) -> bool:
        """True if the memory is indexed."""

    def memory_columns(self, boundary: str) -> MemoryColumns:
        """Return the columns of a boundary's memories. Read them before the next await: later writes change them."""

    def postings(self, boundary: str, terms: Sequence[str], *, fuzzy: bool = True) -> list[Postings]:
        """Return the postings of each term, in the order of `terms`.

        Terms are those of `agents.rules.text.tokenizer`. A term matches every word of the boundary with the same stem
        in a language that the boundary uses and, with `fuzzy`, words with similar character n-grams; their postings are
        merged into one (`agents.rules.index.vocabulary`).
        """

    def entity_postings(self, boundary: str, entities: Sequence[str]) -> list[Postings]:
        """Return the postings of each entity, in the order of `entities`."""

    def category_postings(self, boundary: str, names: Sequence[str]) -> list[Postings]:
        """Return the postings of each category, over all scopes of the boundary, in the order of `names`."""

    def counts(
        self, boundary: str, projects: Collection[str] | None = None
    ) -> Mapping[str, Mapping[EmbeddingStatus, int]]:
        """Count a boundary's memories in these projects, None for all, by mode and embedding status."""

    def numbers_with_status(self, boundary: str, status: EmbeddingStatus) -> IntArray:
        """Return the numbers, in the columns, of a boundary's memories with this status, shape (memories,)."""

    def numbers_containing(self, boundary: str, fragments: Sequence[str]) -> IntArray | None:
        """Return the numbers, in the columns, of all memories that may have words with each of these fragments.

        `fragments` are those of `agents.rules.text.tokenizer.fragments`. None if most memories may have them.
        """

    def with_status(self, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        """Yield the ids of memories with one of these statuses; concurrent writes may or may not show."""

    def awaiting_understanding(self) -> Iterator[str]:
        """Yield the ids of memories that a language model has not read yet, as `with_status` does."""

    def ready_places(self) -> Mapping[VectorLocation, int]:
        """Count the memories with a ready vector by its location, and by those of the vectors held beside it."""


class LexicalWriter(LexicalIndex, Protocol):
    """Reads and writes the index. For `agents.memory` alone."""

    def put(self, document: LexicalDocument) -> None:
        """Index a memory; the terms of its replaced text are no longer found."""

    def remove(self, memory_id: str) -> None:
        """Remove a memory; an unknown id changes nothing."""
