"""The door to the word index: what every memory's words are, kept beside the records and derived from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from agents.rules.index.bm25 import Postings
from agents.rules.index.memory_columns import MemoryColumns
from schemas.memories import EmbeddingStatus, Memory, VectorLocation


class LexicalIndex(Protocol):
    """Memories by their words, one index a Kafka partition, in which statistics are those of one boundary alone.

    Every call is synchronous and belongs to one thread. What is written is seen by every later call at once, and is
    safe after `commit`; what was not committed is gone after a crash, together with the progress set beside it.
    Raises `Unavailable` when storage fails; then nothing of that call was done.
    """

    def open(self, partition: int) -> None:
        """Begin to serve a partition; an index of an older form, or a broken one, is begun anew."""
        ...

    def drop(self, partition: int) -> None:
        """Delete a partition's index, open or not."""
        ...

    def commit(self, partition: int) -> None:
        """Make everything safe that was written to this partition."""
        ...

    def close(self) -> None:
        """Commit and close all partitions."""
        ...

    def applied(self, partition: int) -> Mapping[str, int]:
        """For each topic the offset of the first record that is not yet in this index."""
        ...

    def set_applied(self, partition: int, topic: str, next_offset: int) -> None:
        """Note how far this index has come; safe together with the writes before it."""
        ...

    def put(self, partition: int, memory: Memory) -> None:
        """Write a memory; the same id again replaces, so that a replaced text is no longer found."""
        ...

    def remove(self, partition: int, memory_id: str) -> None:
        """Forget a memory and its words; an unknown id changes nothing."""
        ...

    def has(self, partition: int, memory_id: str) -> bool:
        """Whether a memory is in this index."""
        ...

    def memory_columns(self, partition: int, boundary: str) -> MemoryColumns:
        """All memories of a boundary, as they are now. To be read before the next await: later writes change it."""
        ...

    def postings(self, partition: int, boundary: str, terms: Sequence[str], *, fuzzy: bool = True) -> list[Postings]:
        """For each term the memories of this boundary that have it, in the order of `terms`.

        Terms are words as `agents.rules.text.tokenizer.tokenize` cuts them. A word counts as another of the boundary that has the
        same stem in a language that is spoken there, and, with `fuzzy`, as one that shares most of its letters; all
        such words are one term, with their postings merged (`agents.rules.index.vocabulary`). What other boundaries hold
        changes nothing.
        """
        ...

    def entity_postings(self, partition: int, boundary: str, entities: Sequence[str]) -> list[Postings]:
        """For each entity the memories of this boundary that name it, in the order of `entities`."""
        ...

    def category_postings(self, partition: int, boundary: str, names: Sequence[str]) -> list[Postings]:
        """For each category the memories of this boundary that are under it, in any scope, in the order of `names`."""
        ...

    def counts(self, partition: int, boundary: str) -> Mapping[str, Mapping[EmbeddingStatus, int]]:
        """How many memories a boundary has, by mode and embedding status."""
        ...

    def with_status(self, partition: int, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        """The ids of all memories with one of these statuses; one that is written meanwhile may come or not."""
        ...

    def awaiting_understanding(self, partition: int) -> Iterator[str]:
        """The ids of all memories that a language model is still to read, as `with_status` gives them."""
        ...

    def ready_places(self, partition: int) -> Mapping[VectorLocation, int]:
        """How many memories have their vector in each place."""
        ...
