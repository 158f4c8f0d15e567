"""The table `intentions` over a dict."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from schemas.state.intention import Intention


class FakeIntentions:
    """Implements `streams.flow.stores.ScopeStore` in memory; `writes` counts the writes.

    While `outage` is true, what is written is here and stays unsafe, as with a changelog that does not answer.
    """

    def __init__(self, boundary_fields: BoundaryFields = USER_BOUNDARY) -> None:
        self._boundary_fields = boundary_fields
        self.outage = False
        self.writes = 0
        self.stored: dict[tuple[int, tuple[tuple[str, str], ...]], str] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Intention:
        value = self.stored.get((partition, tuple(scope.items())))
        return Intention() if value is None else Intention.model_validate_json(value)

    def put(self, partition: int, scope: Mapping[str, str], intention: Intention) -> None:
        self.writes += 1
        self.stored[partition, tuple(scope.items())] = intention.model_dump_json(exclude_defaults=True)

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        here = [dict(scope) for where, scope in self.stored if where == partition]
        return [scope for scope in here if self._boundary_fields.key(scope) == boundary]

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return nothing, or a write that never completes."""
        return [_never()] if self.outage else []


async def _never() -> None:
    await asyncio.Event().wait()
