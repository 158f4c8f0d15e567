"""The indexes of one partition, derived from the records: terms and columns of every memory, and vectors by space.

Calls raise `Unavailable` if the same call may succeed later, and those of vectors KeyError after the partition has left
this process; any other error is a defect.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import Postings
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, Point, Scored, Vector
from schemas.state.memories import VectorLocation
from schemas.state.modes import Fingerprint, VectorSpace


class LexicalIndex(Protocol):
    """Reads terms, entities and columns. Statistics cover one boundary: others' data changes no score.

    Calls are synchronous and belong to one thread; a write is visible to every later call. One that raises
    `Unavailable` did nothing.
    """

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
        """Count the memories with a ready vector by its location, and by the locations of their further vectors."""


class LexicalWriter(LexicalIndex, Protocol):
    """Reads and writes the index. For `agents.memory` alone."""

    def put(self, document: LexicalDocument) -> None:
        """Index a memory; the terms of its replaced text are no longer found."""

    def remove(self, memory_id: str) -> None:
        """Remove a memory; an unknown id changes nothing."""


PASSAGES_READ = 2
"""Passages of a cut text that late interaction reads where it may choose: the tokens of an uncut text of that length
cost as much."""

INCOMPLETE = "incomplete"
"""In place of a content hash."""


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """The reads that a question will make in one space, with the same vectors, filter and limits.

    `search` by the pooled vector of each of `questions`. `maxsim` by their token vectors unless `maxsim_limit` is None:
    over all memories, or, if `candidates` are given, over these, what `search` finds, and perhaps more.
    `search_passages` by their pooled vectors over all memories, unless `passage_limit` is None.
    """

    space: VectorSpace
    questions: Sequence[Encoded]
    where: MemoryFilter
    dense_limit: int
    maxsim_limit: int | None = None
    candidates: Sequence[str] | None = None
    passage_limit: int | None = None


class VectorReads(Protocol):
    """Searches of one question."""

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Sequence[Scored]:
        """Return the points nearest to the pooled vector that `where` admits: exact, best first, ties by id.

        With `memory_ids` among these alone: of 60,000 points that costs no more than a search of all, up to some 5,000.

        The score of a cut text is the mean of its passages' cosines: the product with their mean, which is shorter than
        1 the more they differ, so that a long text about much is not near to all of it. Where the engine or a server
        searches, not an index in memory, the result has the `limit` points nearest by direction, in order of score: a
        point beyond them may have a better score than a cut text among them.
        """

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        """Return the texts whose best passage is nearest to the pooled vector: exact, best first, ties by id.

        Compares the pooled vectors of the passages of all cut texts that `where` admits, or of those of `memory_ids`
        that it admits. Texts that are not cut are not in the result. Its `passages` are all that were compared; where a
        read is a round trip, those further than the last memory of the result may be missing. Without `memory_ids` a
        boundary with more memories than an index caches takes long: tens of microseconds a memory.
        """

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        """Late interaction (MaxSim of ColBERT, Khattab and Zaharia 2020): best first, ties by id.

        A memory's score is the sum, over the rows of `question` (shape (rows, `token_dim`)), of the greatest dot
        product of the row with one of the memory's token vectors. Rows come weighted: with rows of length 1 and weights
        that sum to 1, scores hardly exceed 1. A row may be rounded, so that a product is off by 0.5 % of its length;
        equal memories get equal scores. Scores all memories that `where` admits (3 ms for 5,000 short ones), or those
        of `memory_ids` that it admits (0.3 ms for 300). A memory without token vectors is not in the result; a question
        without rows finds nothing. Raises ValueError as `upsert` does.

        A cut text scores as its best passage; `passages` are the scored passages, as in
        `search_passages`. With the question's `pooled` vector an index may score, of a cut text, only the
        `PASSAGES_READ` passages with token vectors that are nearest to it by cosine, ties by number: that bounds the
        cost of a long text.
        """


class VectorIndex(VectorReads, Protocol):
    """Reads and writes vectors. Only `agents.embedding` writes.

    A write is durable and visible to `search` when the call returns. Ids are UUID strings. The first write to a space
    creates its collection, with payload indexes before data; a read of a missing collection finds nothing.
    """

    is_remote: bool
    """True if every read is a round trip, so that reads that follow from others are to be avoided."""

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points; a point of an existing id replaces it, and of equal ids in `points` the last one counts.

        Raises ValueError, before anything is written, for vectors of another dimension or with NaN or infinity, for
        token vectors in a space without `token_dim` in its fingerprint, for passages in one without `passages`, and for
        passages whose token counts do not sum to the number of token vectors.
        """

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; ignores unknown ids."""

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        """Return the planned reads of a question; their results equal this index's own.

        Where a read is a round trip, all of `searches` are sent at once and their answers awaited. An error is raised
        by the reads that it concerns.
        """

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the content hash of each memory that has a point.

        `INCOMPLETE` where a killed write or deletion has left a part of it: to be written again, or deleted.
        """

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """Return the vectors of each memory that has a point; pooled ones of length 1, with the written direction.

        That of a cut text has the direction of its passages' mean. Token vectors are returned in the 16-bit form in
        which the index stores them, in order, and so are the vectors of passages; written again, they give the same
        scores.
        """

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the pooled vectors alone, as `vectors` does: 20 us each where `vectors` takes 160."""

    async def count(self, space: VectorSpace, partition: int) -> int:
        """Count the points of a partition in this space."""

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint stored in each existing collection, by collection name."""

    def problem(self) -> str | None:
        """Return why a part of the index can't be used at present; None if all is well."""

    def set_aside(self) -> Sequence[str]:
        """Return the collections that were damaged and set aside; their vectors are made again from the records."""

    async def close(self) -> None:
        """Release files and connections; no call may follow."""


class VectorIndexes(Protocol):
    """The vector indexes of a worker, by partition."""

    def at(self, partition: int) -> VectorIndex:
        """Return the index of a partition; raises KeyError if this process does not have the partition."""

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        """Call `on_lost` when a collection is set aside from now on."""

    async def release(self, partition: int) -> None:
        """Close the index of a partition that leaves this process."""

    async def close(self) -> None:
        """Release files and connections; no call may follow."""
