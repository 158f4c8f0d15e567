"""The doors to the outside that most agents need; the others are in the modules `*_port`.

Adapters and fakes implement them and pass the same contract tests. A port raises `Unavailable` when the same call may
succeed later; any other exception is a defect.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from schemas.embedders import EmbedderDescription
from schemas.memories import Memory, Place
from schemas.modes import Declared, Fingerprint, Mode, VectorSpace
from schemas.vectors import Encoded, Matrix, Point, Scored, Vector, Where


class Clock(Protocol):
    """Tells the time, so that tests can."""

    def now(self) -> datetime:
        """The time, with its zone UTC."""
        ...


class Memories(Protocol):
    """The records, by partition and memory id: the table `memories`. `remember` alone writes."""

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None."""
        ...

    def put(self, partition: int, memory: Memory) -> None:
        """Write a record over the one before. Only while an event of that partition is being handled."""
        ...

    def forget(self, partition: int, memory_id: str, place: Place | None = None) -> None:
        """Leave a mark in place of a record, for good: `get` gives None, `is_forgotten` is true.

        `place` is where its last vector is known to lie.
        """
        ...

    def remove(self, partition: int, memory_id: str, place: Place | None = None) -> None:
        """Leave nothing of a record but where its last vector is known to lie: a record of this id may come again."""
        ...

    def is_removed(self, partition: int, memory_id: str) -> bool:
        """Whether a record of this id was here and is no more, removed or forgotten."""
        ...

    def removed(self, partition: int) -> Iterator[str | None]:
        """The ids of what was removed and not forgotten; None for everything else, so that one may pause at any."""
        ...

    def last_place(self, partition: int, memory_id: str) -> Place | None:
        """The place that was given to `forget` or `remove`."""
        ...

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        """Whether a record of this id was here and was forgotten."""
        ...


class Modes(Protocol):
    """What each boundary has declared: the table `modes`. `govern` alone writes."""

    def get(self, partition: int, boundary: str) -> Declared:
        """What is declared; nothing but `general` for a boundary that never declared anything."""
        ...

    def put(self, partition: int, boundary: str, declared: Declared) -> None:
        """Write what is declared over what was. Only while an event of that partition is being handled."""
        ...


class Embedder(Protocol):
    """One model that turns texts into vectors. Prefixes are the adapter's work, never the caller's."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie. Stable while the process lives."""
        ...

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept. Runs off the event loop; as many at once as there are cores."""
        ...

    async def query(self, text: str) -> Encoded:
        """Embed a question, ahead of any passages that are waiting."""
        ...


class Embedders(Protocol):
    """All embedders that modes may name. Nothing is loaded before it is asked for."""

    def described(self, name: str) -> EmbedderDescription | None:
        """The preset or configured embedder of that name, or whose model has it; None for a name that is neither."""
        ...

    def of(self, mode: Mode) -> Embedder:
        """The loaded embedder of a mode, with the mode's prefixes. Begins to load it where it is not yet.

        Raises ModelMissing, whose text says why, while it is not loaded.
        """
        ...

    def for_text(self, mode: Mode, text: str) -> Embedder:
        """The same, once the model is loaded that reads this text: a mode may have one for each language.

        Raises ModelMissing as `of` does.
        """
        ...

    def crossing(self, mode: Mode, text: str) -> Embedder | None:
        """The model that a mode has for languages unlike that of this text, and that reads any text.

        None where one model reads all of them, and while one is not loaded: `of` is all that there is then.
        """
        ...


class VectorIndex(Protocol):
    """Vectors by space. Only the indexer writes.

    Every call that writes is durable, and visible to `search`, when it returns. Ids are UUID strings. Writing to a
    space creates its collection, with payload indexes before data; reading one that does not exist finds nothing.
    """

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points; the same id again replaces. A later point of the same id in `points` wins.

        Raises ValueError for vectors of another dimension or with NaN or infinity, and for token vectors in a space
        whose fingerprint has no `token_dim`, before anything is written.
        """
        ...

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        ...

    async def search(self, space: VectorSpace, vector: Vector, where: Where, limit: int) -> list[Scored]:
        """The nearest points that `where` admits by the pooled vector: exact, best first, equal ones by id."""
        ...

    async def late(
        self, space: VectorSpace, question: Matrix, where: Where, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[Scored]:
        """Late interaction (MaxSim of ColBERT, Khattab and Zaharia 2020): exact, best first, equal ones by id.

        A memory's score is the sum, over the rows of `question` (shape (rows, `token_dim`)), of the greatest dot
        product of the row with one of the memory's token vectors. Rows come weighted: where the weights of rows of
        length 1 sum to 1, no score is far beyond 1. Over all that `where` admits, which costs by their number (15 ms
        for 5,000 short memories), or over `memory_ids` as far as it admits them (2 ms for 300). A memory without
        token vectors is not in the answer; a question without rows finds nothing. Raises ValueError as `upsert` does.
        """
        ...

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """The content hash of each of these memories' points, for those that have one."""
        ...

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """The vectors of these memories' points, for those that have one, with the direction that was written.

        Token vectors come back as the index keeps them, in 16 bits a number, in their order; written again, they score
        as they did.
        """
        ...

    async def count(self, space: VectorSpace, partition: int) -> int:
        """How many points a partition has in this space."""
        ...

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """The collections that exist, by name, with the fingerprint that is kept in each."""
        ...

    async def close(self) -> None:
        """Release files and connections; nothing may be called afterwards."""
        ...
