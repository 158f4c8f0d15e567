"""No vector index: writes are dropped, and nothing is found. For deployments that search by words alone."""

from typing import Any, Self

from schemas.failures import Unavailable

REASON = "this deployment keeps no vectors (VECTOR_INDEX)"


class NoVectors:
    """Implements `agents.ports.indexes.VectorIndex` and `VectorIndexes`. Searches raise Unavailable."""

    is_remote = False

    def at(self, _partition: int) -> Self:
        """Return the index of a partition: of all the same."""
        return self

    async def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Unavailable(REASON)

    async def _nothing(self, *_: Any) -> Any:
        return {}

    search = search_passages = maxsim = _refuse
    upsert = delete = hashes = vectors = pooled = spaces = release = close = _nothing

    async def read_ahead(self, *_: Any) -> Self:
        return self

    async def count(self, *_: Any) -> int:
        return 0

    def problem(self) -> None:
        """Return None: all is as it is set."""

    def set_aside(self) -> tuple[str, ...]:
        return ()

    def watch_losses(self, _: Any) -> None:
        """Do nothing: there is nothing to lose."""
