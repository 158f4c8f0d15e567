"""The indexer on its topic: memories into vectors, many at the same time, written in batches, in order."""

from collections.abc import Awaitable, Callable, Sequence

from agents.embed import Embed, Vectored
from schemas.events import Forgotten, Remembered
from schemas.records import Record
from streams.flow.awaiting import all_of, nothing
from streams.flow.patience import until_available
from streams.flow.steps import Internal, event_out
from streams.flow.surroundings import Surroundings

FLUSH_EVERY_S = 0.1
"""Between two writes to the vector index: each waits for the disk, however few its points are."""


class EmbedRemembered(Internal):
    """Memories into vectors."""

    window = 512
    pause_s = FLUSH_EVERY_S

    def __init__(self, embed: Embed, around: Surroundings) -> None:
        super().__init__({"remembered.v1": Remembered, "forgotten.v1": Forgotten}, around)
        self._embed = embed

    async def begin(self, record: Record) -> Awaitable[Vectored | None]:
        """Start one memory's vector."""
        event = await self.read(record)
        return nothing() if event is None else self._vector(event, record.partition)

    async def settle(self, finished: Sequence[Vectored | None]) -> None:
        """Write the vectors, then tell the keeper."""
        batch = [one for one in finished if one is not None]
        if not batch:
            return
        meters = self._around.meters
        events = await until_available(lambda: self._embed.write(batch), "vector index", meters)
        boundaries = {one.memory_id: one.memory.boundary for one in batch if one.memory is not None}
        sent = []
        for event in events:
            meters.embedded(event.status)
            out = event_out(self._around.topics.embedded, boundaries[event.memory_id], event)
            sent.append(await self._around.publisher.send(out))
        await all_of(sent)

    async def _vector(self, event: Remembered | Forgotten, partition: int) -> Vectored:
        encode: Callable[[], Awaitable[Vectored]] = lambda: self._embed.encode(event, partition)  # noqa: E731
        return await until_available(encode, "embedder", self._around.meters)
