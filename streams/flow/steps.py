"""How each agent is run: its two halves for a `Delivery`, `begin` in order and `settle` before the acknowledgement."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import structlog
from pydantic import BaseModel

from agents.embed import Embed, Vectored
from agents.remember import Accepted, Remember
from agents.rules.dead_letters import dead_letter
from agents.rules.decoding import decode
from schemas.events import Embedded, Remembered
from schemas.failures import Rejected
from schemas.records import Outgoing, Record
from schemas.replies import Answer
from schemas.turns import Turn
from streams.flow.awaiting import all_of, nothing
from streams.flow.patience import until_available
from streams.flow.requests import Asked, Channel, Handle, Handled, Requests, context
from streams.flow.surroundings import Surroundings

log = structlog.get_logger()

Event = TypeVar("Event", bound=BaseModel)


COMMIT_EVERY_S = 0.05
"""Between two commits of the word index; only acknowledgements wait for them, not readers."""

FLUSH_EVERY_S = 0.1
"""Between two writes to the vector index: each waits for the disk, however few its points are."""


STORAGE_S = 30.0
"""How long our own disk is waited for. A full one may get room; what stays broken needs a new start of the process."""


class Step(Protocol):
    """One agent as a delivery runs it."""

    window: int
    """Events under way at most."""
    pause_s: float
    """Seconds between two calls of `settle`, at least."""

    async def begin(self, record: Record) -> Awaitable[Any]:
        """The part that must happen in order."""
        ...

    async def settle(self, finished: Sequence[Any]) -> None:
        """The part that makes a run of events safe."""
        ...


class Requested:
    """A topic that others write to: every record is answered, moved, or a dead letter."""

    window = 256
    pause_s = 0.0

    def __init__(self, channel: Channel, handle: Handle, around: Surroundings) -> None:
        topics = around.topics
        self._requests = Requests(
            channel=channel,
            handle=handle,
            partitions=around.partitions,
            replies=topics.replies,
            dead_letters=topics.dead_letters,
            publisher=around.publisher,
            clock=around.clock,
            meters=around.meters,
        )

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Take the record as far as order demands."""
        return await self._requests.begin(record)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Nothing is left to do: replies and events are out."""


class RememberTurns(Requested):
    """Turns into memories, one after another; what is applied can be read at once, and is committed before acks."""

    window = 1024
    pause_s = COMMIT_EVERY_S

    def __init__(self, channel: Channel, remember: Remember, around: Surroundings) -> None:
        super().__init__(channel, self._handle, around)
        self._remember = remember
        self._around = around

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record, and note that it is applied whatever became of it."""
        finishing = await super().begin(record)
        self._around.words.set_applied(record.partition, record.topic, record.offset + 1)
        self._around.progress.advance(record.partition, record.offset + 1)
        return _then(finishing, record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._around, finished)

    async def _handle(self, turn: Turn, record: Record, _asked: Asked) -> Handled:
        async def remember() -> Accepted:
            return self._remember.turn(turn, record)

        # A full disk is no reason to refuse a turn: it waits, and those behind it.
        accepted = await until_available(remember, "storage", self._around.meters, at_most_s=STORAGE_S)
        safe = self._around.memories.unwritten()
        return Handled(Answer(accepted.result), _remembered(self._around, accepted.event), safe)


class Internal:
    """A topic that only we write to. What can't be read there is a dead letter all the same."""

    def __init__(self, kinds: dict[str, type[Event]], around: Surroundings) -> None:
        self._kinds = kinds
        self._around = around

    async def read(self, record: Record) -> Any:
        """The event in a record, or None for one that went to the dead letters."""
        try:
            return decode(record.value, self._kinds)
        except Rejected as error:
            log.warning("an event of our own can't be read", code=error.code, **context(record))
            self._around.meters.rejected(record.topic, error.code)
            letter = dead_letter(self._around.topics.dead_letters, record, error, self._around.clock.now())
            await (await self._around.publisher.send(letter))
            return None


class RememberEmbedded(Internal):
    """The embedding status of memories, from what the indexer says."""

    window = 1024
    pause_s = COMMIT_EVERY_S

    def __init__(self, remember: Remember, around: Surroundings) -> None:
        super().__init__({"embedded.v1": Embedded}, around)
        self._remember = remember

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply one event."""
        event = await self.read(record)

        async def remember() -> Remembered | None:
            return None if event is None else self._remember.embedded(event, record.partition)

        follows = await until_available(remember, "storage", self._around.meters, at_most_s=STORAGE_S)
        safe: list[Awaitable[object]] = list(self._around.memories.unwritten())
        safe += [await self._around.publisher.send(out) for out in _remembered(self._around, follows)]
        self._around.words.set_applied(record.partition, record.topic, record.offset + 1)
        return _then(all_of(safe), record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._around, finished)


class EmbedRemembered(Internal):
    """Memories into vectors: many at the same time, written in batches, in order."""

    window = 512
    pause_s = FLUSH_EVERY_S

    def __init__(self, embed: Embed, around: Surroundings) -> None:
        super().__init__({"remembered.v1": Remembered}, around)
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
        sent = []
        for one, event in zip(batch, events, strict=True):
            meters.embedded(event.status)
            key = one.memory.boundary.encode()
            value = event.model_dump_json(by_alias=True).encode()
            sent.append(await self._around.publisher.send(Outgoing(self._around.topics.embedded, key, value)))
        await all_of(sent)

    async def _vector(self, event: Remembered, partition: int) -> Vectored:
        encode: Callable[[], Awaitable[Vectored]] = lambda: self._embed.encode(event.memory, partition)  # noqa: E731
        return await until_available(encode, "embedder", self._around.meters)


async def _commit(around: Surroundings, partitions: Sequence[int]) -> None:
    async def commit() -> None:
        for partition in set(partitions):
            around.words.commit(partition)

    await until_available(commit, "storage", around.meters, at_most_s=STORAGE_S)


def _remembered(around: Surroundings, event: Remembered | None) -> list[Outgoing]:
    if event is None:
        return []
    value = event.model_dump_json(by_alias=True).encode()
    return [Outgoing(around.topics.remembered, event.memory.boundary.encode(), value)]


async def _then(finishing: Awaitable[object], partition: int) -> int:
    await finishing
    return partition
