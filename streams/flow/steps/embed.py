"""The indexer and the thinker on what was remembered: vectors and what turns are for, from the same pass of a model.

Many memories are under way at the same time; they are written in batches, in order, and the keeper is told of both in
one event, so that a turn costs one write of its record. A language model is asked beside the events: none waits for it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.embedding.embed import Embed, EncodedMemory
from agents.understanding.understand import Understand
from schemas.events import Forgotten, Remembered
from schemas.failures import ModelMissing
from schemas.interaction import Interaction
from schemas.memories import Memory
from schemas.records import Record
from streams.flow.steps.step import Internal, event_out
from streams.flow.support.awaiting import await_all, no_writes
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext

FLUSH_INTERVAL_S = 0.1
"""Between two writes to the vector index: each waits for the disk, however few its points are."""

AskModel = Callable[[int, Memory], None]
"""Has a language model asked of a memory of a partition, when there is one."""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """A memory with its vector, and what it is for."""

    vectored: EncodedMemory
    partition: int
    interaction: Interaction | None = None


class EmbedRemembered(Internal):
    """Memories into vectors, and into what they are for."""

    window = 512
    pause_s = FLUSH_INTERVAL_S

    def __init__(self, embed: Embed, understand: Understand, ask_model: AskModel, ctx: WorkerContext) -> None:
        super().__init__({"remembered.v1": Remembered, "forgotten.v1": Forgotten}, ctx)
        self._embed = embed
        self._understand = understand
        self._ask_model = ask_model

    async def begin(self, record: Record) -> Awaitable[EmbeddedMemory | None]:
        """Start with one memory."""
        event = await self.read(record)
        return no_writes() if event is None else self._read(event, record.partition)

    async def settle(self, finished: Sequence[EmbeddedMemory | None]) -> None:
        """Write the vectors, then tell the keeper; what its record says is pending is asked of a model."""
        read = [one for one in finished if one is not None]
        if not read:
            return
        meters = self._ctx.meters
        batch = [one.vectored for one in read]
        events = await until_available(lambda: self._embed.write(batch), "vector index", meters)
        latest = {one.vectored.memory_id: one for one in read}
        sent = []
        for event in events:
            meters.embedded(event.status)
            one = latest[event.memory_id]
            told = event.model_copy(update={"interaction": one.interaction, "run": self._ctx.worker_run_id})
            assert one.vectored.memory is not None
            out = event_out(self._ctx.topics.embedded, one.vectored.memory.boundary, told)
            sent.append(await self._ctx.publisher.send(out))
        await await_all(sent)
        for one in latest.values():
            if one.vectored.memory is not None and one.vectored.memory.reading.status == "pending":
                self._ask_model(one.partition, one.vectored.memory)

    async def _read(self, event: Remembered | Forgotten, partition: int) -> EmbeddedMemory:
        meters = self._ctx.meters
        vectored = await until_available(lambda: self._embed.encode(event, partition), "embedder", meters)
        if isinstance(event, Forgotten):
            return EmbeddedMemory(vectored, partition)
        interaction = await until_available(lambda: self._interaction(event.memory), "embedder", meters)
        return EmbeddedMemory(vectored, partition, interaction)

    async def _interaction(self, memory: Memory) -> Interaction | None:
        try:
            return await self._understand.by_rules(memory)
        except ModelMissing:
            return None  # Whoever wants to know reads the turn when he asks.
