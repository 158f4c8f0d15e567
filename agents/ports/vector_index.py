"""Vectors by space. Raises `Unavailable` where the same call may succeed later; anything else is a defect."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from schemas.modes import Fingerprint, VectorSpace
from schemas.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector


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

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        """The nearest points that `where` admits by the pooled vector: exact, best first, equal ones by id."""
        ...

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
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
