"""`Embed` and `Understand` on the topic of remembered memories: vectors, and from them interaction modes.

Many memories are in flight at once; vectors are written in batches, in order. One event reports both to `Remember`, so
that a turn costs one write of its record. Language models are asked in the background.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from agents.maps.draw_map import DrawMap
from agents.ports.pipelines import State
from agents.understanding.understand import Understand
from schemas.failures import ModelMissing
from schemas.internal.events import Embedded, Forgotten, Released, Remembered
from schemas.messages.records import Headers, Record
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.fair_queue import FairShare
from streams.flow.publisher import no_writes
from streams.flow.requests.events import EventReader
from streams.flow.runs.parts import PartUnderWay, end_part
from streams.flow.runs.recorder import RunRecorder
from streams.flow.steps.report_embedded import Report
from streams.observability.metrics import Meters
from streams.observability.tracing import carried_headers

FLUSH_INTERVAL_S = 0.3
"""Between two writes to the vector index; a turn after a pause is written at once. Each write takes 1.6 ms of processor
time in each of its partitions, whatever the number of its points, and waits for the disk."""

WRITE_STEP = "memorize.index_write"
"""The step of a run in which a batch of vectors is written."""

RememberedEvent = Remembered | Forgotten | Released

REMEMBERED_EVENTS: Mapping[str, type[RememberedEvent]] = {
    "remembered.v1": Remembered,
    "forgotten.v1": Forgotten,
    "released.v1": Released,
}
"""The events read here, by schema name."""

AskModel = Callable[[int, Memory], None]
"""Queues a memory of a partition for the language model, if there is one."""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """A memory with its vector and its interaction mode."""

    encoded: EncodedMemory
    partition: int
    interaction: Interaction | None = None
    carried: Headers = ()
    """The trace that the memory's event carries on."""
    part: PartUnderWay | None = None
    """The part of its turn's run, if that is recorded."""


class EmbedRemembered:
    """`Remembered` and `Forgotten` in, vectors written and `Embedded` out."""

    window = 1024
    pause_s = FLUSH_INTERVAL_S
    fair_share: FairShare | None = None

    def __init__(
        self,
        reader: EventReader,
        embed: Embed,
        understand_at: Callable[[int], Understand],
        draw_map_at: Callable[[int], DrawMap],
        ask_model: AskModel,
        report: Callable[[Sequence[Report]], Awaitable[None]],
        meters: Meters,
        *,
        worker_run_id: str = "",
        runs: RunRecorder | None = None,
    ) -> None:
        self._runs = runs
        self._reader = reader
        self._embed = embed
        self._understand_at = understand_at
        self._draw_map_at = draw_map_at
        self._ask_model = ask_model
        self._report = report
        self._meters = meters
        self._worker_run_id = worker_run_id

    async def begin(self, record: Record) -> Awaitable[EmbeddedMemory | None]:
        """Start to embed one memory."""
        event = await self._reader.read(record)
        return no_writes() if event is None else self._encode(event, record.partition)

    async def settle(self, finished: Sequence[EmbeddedMemory | None]) -> None:
        """Write the vectors, report them, and queue pending memories for the language model."""
        memories = [embedded for embedded in finished if embedded is not None]
        if not memories:
            return
        batch = [embedded.encoded for embedded in memories]
        began = perf_counter()
        events = await until_available(lambda: self._embed.write(batch), "vector index", self._meters)
        self._record(memories, began)
        memories = [embedded for embedded in memories if not embedded.encoded.is_release]
        await self._outdate(memories)
        latest = {embedded.encoded.memory_id: embedded for embedded in memories}
        await self._report([self._report_of(event, latest[event.memory_id]) for event in events])
        for embedded in latest.values():
            if embedded.encoded.memory is not None and embedded.encoded.memory.reading.status == "pending":
                self._ask_model(embedded.partition, embedded.encoded.memory)

    def _report_of(self, event: Embedded, embedded: EmbeddedMemory) -> Report:
        self._meters.embedded(event.status)
        assert embedded.encoded.memory is not None
        event = event.model_copy(update={"interaction": embedded.interaction, "run": self._worker_run_id})
        return Report(embedded.partition, embedded.encoded.memory.boundary, event, embedded.carried)

    async def _outdate(self, memories: Sequence[EmbeddedMemory]) -> None:
        """Take edited memories from the kept maps: their vectors have changed."""
        edited: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        for embedded in memories:
            if (memory := embedded.encoded.memory) is not None and memory.version > 1:
                edited[embedded.partition, memory.boundary].append(memory.memory_id)
        for (partition, boundary), memory_ids in edited.items():
            await self._draw_map_at(partition).outdate(boundary, memory_ids)

    async def _encode(self, event: RememberedEvent, partition: int) -> EmbeddedMemory:
        if isinstance(event, Forgotten | Released) or not event.memory.visibility.searchable:
            return EmbeddedMemory(await self._encoded(event, partition), partition)
        # Begin the part of a turn's run, if that is recorded.
        is_recorded = (
            self._runs is not None and event.memory.origin == "said" and self._runs.is_sampled(event.memory.memory_id)
        )
        part = PartUnderWay() if is_recorded else None
        understand = self._understand_at(partition)
        state: State = {}

        async def index(_state: State) -> State:
            encoded = await self._encoded(event, partition)
            interaction = await until_available(lambda: _classify(understand, event.memory), "embedder", self._meters)
            return {"vector": encoded, "interaction": interaction}

        with nullcontext() if part is None else part.timer:
            await understand.pipelines.run({"memorize.index": index}, state)
        return EmbeddedMemory(state["vector"], partition, state["interaction"], carried_headers(), part)

    def _encoded(self, event: RememberedEvent, partition: int) -> Awaitable[EncodedMemory]:
        return until_available(lambda: self._embed.encode(event, partition), "embedder", self._meters)

    def _record(self, memories: Sequence[EmbeddedMemory], began: float) -> None:
        """Record the parts of a written batch, which began to be written at a time of `time.perf_counter`."""
        for embedded in memories:
            if embedded.part is not None and embedded.encoded.memory is not None:
                embedded.part.timer.add_step(WRITE_STEP, began)
                embedded.part.outcome = {"batch": len(memories), "error": embedded.encoded.error is not None}
                end_part(self._runs, "index", embedded.encoded.memory, embedded.partition, embedded.part)


async def _classify(understand: Understand, memory: Memory) -> Interaction | None:
    try:
        return await understand.by_rules(memory)
    except ModelMissing:
        return None  # Classified lazily, at request time.
