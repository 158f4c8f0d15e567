"""Count some boundaries of a partition in a thread, and publish their records in the right order.

Enters: boundaries. Leaves: their `boundary.v1` on the topic `boundaries`. Guaranteed: of two counts of one boundary the
later is published last, and no count of before follows the tombstone of a forgotten user.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from agents.rules.memory.boundary_summary import summarise_boundary
from schemas.messages.boundaries import Boundary
from schemas.messages.records import Outgoing, Record
from schemas.state.modes import ModeDeclarations
from streams.flow.publisher import await_all
from streams.flow.stores.tables import BoundaryCounts
from streams.flow.worker_context import WorkerContext

PAGE_SIZE = 100
"""Boundaries that are counted at once, in some milliseconds of a thread."""

IsWanted = Callable[[str, bytes], bool]
"""True if a boundary's new value is to be published; asked just before."""


def note_told(told: dict[str, int], record: Record) -> None:
    """Note the digest of a record's value under its boundary; of a tombstone, nothing. 150 bytes for each boundary."""
    boundary = (record.key or b"").decode(errors="replace")
    if record.value is None:
        told.pop(boundary, None)
    else:
        told[boundary] = hash(record.value)


class BoundaryPages:
    """Publishes pages of boundaries, one page at a time."""

    def __init__(self, counts: BoundaryCounts, ctx: WorkerContext) -> None:
        self._counts = counts
        self._ctx = ctx
        self._room = asyncio.Lock()

    async def publish(self, partition: int, boundaries: Sequence[str], is_wanted: IsWanted) -> None:
        """Count these boundaries and publish what is wanted.

        Raises Unavailable where the index can't be read, KeyError where the partition has left.
        """
        async with self._room:
            forgets = self._ctx.boundaries.forgets
            declared = {name: self._ctx.stores.modes.get(partition, name) for name in boundaries}
            found = await asyncio.to_thread(self._summarise, partition, declared)
            sent = []
            for summary, value in found:
                # Just before it is sent: while the thread counted, the user may have been forgotten.
                if self._is_current(summary, partition, forgets) and is_wanted(summary.boundary, value):
                    out = Outgoing(self._ctx.topics.boundaries, summary.boundary.encode(), value)
                    sent.append(await self._ctx.publisher.send(out))
            await await_all(sent)

    def _summarise(self, partition: int, declared: Mapping[str, ModeDeclarations]) -> list[tuple[Boundary, bytes]]:
        counts = self._counts.read(partition, list(declared))
        fields = self._ctx.scope_model.boundary_fields
        summaries = [summarise_boundary(name, counts[name], modes, fields) for name, modes in declared.items()]
        return [(summary, summary.model_dump_json(by_alias=True).encode()) for summary in summaries]

    def _is_current(self, counted: Boundary, partition: int, forgets: int) -> bool:
        """False if a count is of before the user was forgotten, of nothing since, or of a partition that has left."""
        return self._ctx.is_assigned(partition) and self._ctx.boundaries.may_follow_tombstone(
            counted.boundary, forgets, counted.memories
        )
