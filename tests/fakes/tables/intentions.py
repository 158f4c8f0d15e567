"""Intentions in a dict: what the table `intentions` is in a worker."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from schemas.scopes import boundary_key
from schemas.state.intention import Intention


class FakeIntentions:
    """Implements `streams.flow.worker_context.AwaitableIntentions` in memory; `writes` counts how often it was written.

    While `outage` is true, what is written is here and stays unsafe, as with a changelog that does not answer.
    """

    def __init__(self) -> None:
        self.outage = False
        self.writes = 0
        self._kept: dict[tuple[int, tuple[tuple[str, str], ...]], str] = {}

    def get(self, partition: int, scope: Mapping[str, str]) -> Intention:
        """The intention of a scope; an empty one for a scope that has none."""
        value = self._kept.get((partition, tuple(scope.items())))
        return Intention() if value is None else Intention.model_validate_json(value)

    def put(self, partition: int, scope: Mapping[str, str], intention: Intention) -> None:
        """Write an intention over the one before."""
        self.writes += 1
        self._kept[partition, tuple(scope.items())] = intention.model_dump_json(exclude_defaults=True)

    def scopes(self, partition: int, boundary: str) -> Sequence[Mapping[str, str]]:
        """The scopes of a boundary that have an intention."""
        return [dict(scope) for where, scope in self._kept if where == partition and _of(dict(scope), boundary)]

    def pending_writes(self) -> list[Awaitable[None]]:
        """Nothing where a dict is written at once; else what never ends."""
        return [_never()] if self.outage else []


async def _never() -> None:
    await asyncio.Event().wait()


def _of(scope: Mapping[str, str], boundary: str) -> bool:
    return boundary_key([scope["user_id"]]) == boundary
