"""`Remember` on its topics: turns, and the events of the indexer, of language models and of consolidations.

An applied record is visible to readers at once. Its events are awaited before `CommittingStep` commits it, and that
before it is acknowledged. Records of one topic are applied in order.

A long text is read beside the event loop, and many items are written in slices: other events are handled meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember
from agents.memory.write_memory import Result, Slices
from agents.ports.pipelines import ActivePipelines, State
from agents.rules.index.lexical_document import is_long
from agents.rules.items.analysis import AnalysedText, extract_from_files, file_parts
from agents.rules.items.extracting import extract_items
from agents.rules.memory.resources import with_statuses
from agents.rules.memory.understanding import is_about_current_text, with_understanding
from agents.rules.memory.versions import TurnDraft, draft_turn, has_same_text, identify_turn
from agents.rules.pipelines.built_in import ExtractConfig
from agents.rules.text.passages import lexical_text
from schemas.failures import Rejected, RowTooLarge, Unavailable
from schemas.internal.consolidation import Consolidated, Distilled, ItemsMerged
from schemas.internal.events import Embedded, Reread, Understood
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.pipelines.in_force import EXTRACT_ITEMS, INGEST, Pipelines, shipped_pipelines
from streams.flow.publisher import Publisher, await_all, no_writes
from streams.flow.requests.channel import (
    APPLIED,
    EventReader,
    HandlerResult,
    RecentEvents,
    ReplyOptions,
    derived_events,
)
from streams.flow.stores import Stores
from streams.flow.text_reading import ReadLongText, read_in_thread
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import STORAGE_TIMEOUT_S, PartitionCommits
from streams.topics import Topics

# The steps of a turn before it is stored: `memorize.ingest`, `memorize.extract_items`, and custom ones after them. The
# turn keeps the identity that it was published with. Published again after the pipelines have changed, it is prepared
# as it was then, so that it is known as a repetition and changes nothing.


@dataclass(frozen=True, slots=True)
class PrepareTurns:
    """Turns in; the turns to store, and their texts, out."""

    pipelines: Pipelines
    stores: Stores
    read_text: ReadLongText
    meters: Meters

    async def in_force(self) -> ActivePipelines:
        """Return the pipelines by which turns are prepared.

        While the revision that counts can't run here, and has a step that must not be skipped, it waits: Kafka holds
        the turns.
        """
        if not self.pipelines.turns_wait():
            return self.pipelines.current

        async def unless_held() -> ActivePipelines:
            if reason := self.pipelines.turns_wait():
                raise Unavailable(reason)
            return self.pipelines.current

        return await until_available(unless_held, "pipelines", self.meters)

    async def ingest(self, turn: Turn, record: Record, active: ActivePipelines) -> Turn:
        """Return the turn to store. Raises Rejected if a step fails."""
        if not self.pipelines.have_prepared_turns:
            return turn
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        known = self.stores.memories.get(record.partition, identity.memory_id)
        turn = turn.model_copy(update={"turn_id": identity.turn_id})
        if known is not None:
            repeated = await self._as_before(turn, known)
            if repeated is not None and has_same_text(known, identify_turn(repeated, identity.recorded_at)):
                return repeated
        return await _ingested(turn, active)

    async def analyse(
        self, partition: int, memory: Memory, active: ActivePipelines, understanding: Understanding | None = None
    ) -> AnalysedText:
        """Return the text of a memory with its items. Raises Rejected if a step fails."""
        parts = file_parts(memory, partial(self.stores.memories.get, partition))
        state: State = {"memory": memory, "understanding": understanding, "items": []}
        if not active.is_on(EXTRACT_ITEMS) and is_long(lexical_text(memory)):
            # Its words are read with the items, also where these are not wanted.
            await self.read_text(memory, understanding)
        await active.run({EXTRACT_ITEMS: partial(self._extract, active, parts)}, state)
        return AnalysedText.of(memory, understanding, state["items"])

    async def _extract(self, active: ActivePipelines, parts: Sequence[Memory], state: State) -> State:
        memory, understanding, config = state["memory"], state["understanding"], active.config(EXTRACT_ITEMS)
        if is_long(lexical_text(memory)):
            items = await self.read_text(memory, understanding)
        else:
            items = extract_items(memory, understanding)
        if parts:
            items += await asyncio.to_thread(extract_from_files, memory, understanding, parts)
        assert isinstance(config, ExtractConfig)
        if config.min_confidence is not None:
            items = [item for item in items if item.confidence >= config.min_confidence]
        return {"items": items[: config.max_items]}

    async def _as_before(self, turn: Turn, known: Memory) -> Turn | None:
        """Return the turn as the revision that made a memory prepared it; None if that can't be told any more."""
        then = await self.pipelines.at(known.revision)
        if then is None or then.custom_steps(INGEST) == self.pipelines.current.custom_steps(INGEST):
            return None
        try:
            return await _ingested(turn, then)
        except Rejected:
            return None


FORGOTTEN_WARNING = ReplyWarning("forgotten", "this turn was forgotten and stays so; nothing was stored")
"""The warning for a turn that was forgotten and is sent again."""

EVENTS_PER_SLICE = 16
"""Events serialised before other records are handled: an item's event takes about 0.1 ms."""

PLACES_PER_SLICE = 4
"""Places to pause that are passed before other events are handled: four items take some 4 ms."""

MemoryInput = Embedded | Understood | Reread | Distilled | ItemsMerged | Consolidated
"""Events that `Remember` applies. The last of a consolidation is its summary and changes nothing."""

MEMORY_EVENTS: Mapping[str, type[MemoryInput]] = {
    "embedded.v1": Embedded,
    "understood.v1": Understood,
    "reread.v1": Reread,
    "distilled.v1": Distilled,
    "evolved.v1": ItemsMerged,
    "consolidated.v1": Consolidated,
}
"""Their models by schema name."""

MERGE_ITEMS = "memorize.merge_items"

RememberAt = Callable[[int], Remember]


class RememberTurns:
    """Handles `turn.v1`: a turn becomes a memory, found by its words when its reply is sent."""

    def __init__(
        self,
        remember_at: RememberAt,
        stores: Stores,
        commit: PartitionCommits,
        publisher: Publisher,
        topics: Topics,
        meters: Meters,
        *,
        foreground: Foreground | None = None,
        prepare: PrepareTurns | None = None,
        recent: RecentEvents | None = None,
    ) -> None:
        """Many items are written in slices that give way to the requests of `foreground`.

        `prepare` runs custom steps; None: the steps of the release alone. `recent` keeps what is published.
        """
        self._recent = recent
        self._foreground = foreground
        self._prepare = prepare or PrepareTurns(shipped_pipelines(), stores, read_in_thread, meters)
        self._remember_at = remember_at
        self._stores = stores
        self._commit = commit
        self._publisher = publisher
        self._topics = topics
        self._meters = meters

    async def __call__(self, turn: Turn, record: Record, _options: ReplyOptions) -> HandlerResult:
        active = await self._prepare.in_force()
        # The agent of the same revision, which is written on the record.
        remember = self._remember_at(record.partition)
        turn = await self._prepare.ingest(turn, record, active)
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        known = self._stores.memories.get(record.partition, identity.memory_id)
        draft = draft_turn(turn, identity, known, record.offset)
        text = None
        if draft.memory is not None:
            # An edited turn may have files that are read.
            memory = with_statuses(draft.memory, draft.stored, lambda _: False)
            text = await self._prepare.analyse(record.partition, memory, active)
        state: State = {"turn": turn, "record": record}
        await active.run({MERGE_ITEMS: partial(self._store, remember, draft, text)}, state)
        stored = state["stored"]
        if stored.event is not None:
            self._meters.usage.decided(stored.result.mode_source)
        warnings = (FORGOTTEN_WARNING,) if stored.forgotten else ()
        return HandlerResult(SuccessReply(stored.result, warnings), pending_writes=[state["finishing"]])

    async def _store(self, remember: Remember, draft: TurnDraft, text: AnalysedText | None, state: State) -> State:
        turn, record = state["turn"], state["record"]
        sent: list[Awaitable[object]] = []
        writing = await self._commit.begin(record.partition)
        try:
            # A full disk is no reason to refuse a turn: this one and the next ones wait.
            stored = await until_available(
                lambda: in_slices(remember.turn(turn, record, draft, text), self._foreground),
                "storage",
                self._meters,
                at_most_s=STORAGE_TIMEOUT_S,
            )
            remember.files.brought(turn, stored.result.memory_id)
            events = await records_of(self._topics, turn.scope.boundary, stored.events, self._recent)
            sent += [await self._publisher.send(event) for event in events]
        finally:
            finishing = writing.finish(sent)
        return {"stored": stored, "finishing": finishing}


async def records_of(
    topics: Topics, boundary: str, events: Sequence[MemoryEvent], recent: RecentEvents | None = None
) -> list[Outgoing]:
    """Return the records of events that follow, with other events handled meanwhile."""
    records: list[Outgoing] = []
    for some in batches(events, EVENTS_PER_SLICE):
        records += derived_events(topics, boundary, some, is_unhurried=True, recent=recent)
        if len(some) == EVENTS_PER_SLICE:
            await asyncio.sleep(0)
    return records


HasVector = Callable[[Embedded, int], Awaitable[bool]]
"""True if the vector that an event of a partition reports is in the index."""


class RememberEvents:
    """Applies events to records, one record an event.

    A vector that an earlier process has written is looked up before its memory becomes ready: the disk may have been
    lost. Vectors of this process, nearly all, cost no lookup.
    """

    def __init__(
        self,
        reader: EventReader,
        remember_at: RememberAt,
        stores: Stores,
        commit: PartitionCommits,
        publisher: Publisher,
        topics: Topics,
        meters: Meters,
        *,
        worker_run_id: str = "",
        has_vector: HasVector | None = None,
        prepare: PrepareTurns | None = None,
        recent: RecentEvents | None = None,
    ) -> None:
        """Without `has_vector` reported vectors are not verified; `prepare` runs custom steps on items.

        `recent` keeps what is published.
        """
        self._recent = recent
        self._prepare = prepare or PrepareTurns(shipped_pipelines(), stores, read_in_thread, meters)
        self._reader = reader
        self._remember_at = remember_at
        self._stores = stores
        self._commit = commit
        self._publisher = publisher
        self._topics = topics
        self._meters = meters
        self._worker_run_id = worker_run_id
        self._has_vector = has_vector

    async def __call__(self, record: Record) -> Awaitable[object]:
        """Apply one event; return what to await."""
        event = await self._reader.read(record)
        if event is APPLIED:
            return no_writes()
        if not isinstance(event, Embedded):
            return await self._applied(event, record)
        verified = [await self._verified(report, record.partition) for report in event.each()]
        return await_all([await self._applied(report, record) for report in verified])

    async def _applied(self, event: MemoryInput | None, record: Record) -> Awaitable[object]:
        text: AnalysedText | None = None
        if isinstance(event, Understood | Reread):
            event, text = await self._read(event, record)

        async def apply() -> Sequence[MemoryEvent]:
            if event is None:
                return []
            return await in_slices(self._apply(event, record, text))

        boundary, sent = (record.key or b"").decode(), list[Awaitable[object]]()
        writing = await self._commit.begin(record.partition)
        try:
            events = await until_available(apply, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
            follows = await records_of(self._topics, boundary, events, self._recent)
            sent += [await self._publisher.send(out) for out in follows]
        except RowTooLarge as error:
            await self._reader.reject(record, error)
        finally:
            finishing = writing.finish(sent)
        return finishing

    async def _verified(self, event: Embedded, partition: int) -> Embedded:
        """Return the event; as `stale` if it reports a vector that the index does not have."""
        lookup = self._has_vector
        if lookup is None or not self._needs_lookup(event, partition):
            return event
        is_there = await until_available(partial(lookup, event, partition), "vector index", self._meters)
        return event if is_there else event.model_copy(update={"status": "stale"})

    def _needs_lookup(self, event: Embedded, partition: int) -> bool:
        """True if an event of another process would make a memory ready."""
        if event.status != "ready" or event.run == self._worker_run_id:
            return False
        memory = self._stores.memories.get(partition, event.memory_id)
        return memory is not None and (memory.mode, memory.content_hash) == (event.mode, event.content_hash)

    async def _read(
        self, event: Understood | Reread, record: Record
    ) -> tuple[Understood | Reread | None, AnalysedText | None]:
        """Extract the items of a turn, and of a model's answer.

        Where a custom step fails, the answer counts without items: asked again, the model would answer the same. A turn
        that had been understood before keeps those that it has.
        """
        memory = self._stores.memories.get(record.partition, event.memory_id)
        if memory is None or not is_about_current_text(memory, event):
            return event, None
        found = event.found if isinstance(event, Understood) else None
        understood = with_understanding(memory, event) if isinstance(event, Understood) else memory
        try:
            active = await self._prepare.in_force()
            return event, await self._prepare.analyse(record.partition, understood, active, found)
        except Rejected as error:
            await self._reader.reject(record, error)
        if isinstance(event, Reread):
            return None, None
        if event.refresh is not None:
            event, found = event.model_copy(update={"found": None}), None
        return event, AnalysedText.of(understood, found, [])

    def _apply(self, event: MemoryInput, record: Record, text: AnalysedText | None) -> Slices[Sequence[MemoryEvent]]:
        remember = self._remember_at(record.partition)
        match event:
            case Consolidated():
                return []
            case Distilled() | ItemsMerged():
                return remember.consolidated(event)
            case Embedded():
                derived = remember.embedded(event)
                return [] if derived is None else [derived]
            case Understood() | Reread():
                result = yield from remember.understood(event, text)
                if result.agrees_with_default is not None:
                    self._meters.usage.model_answered((record.key or b"").decode(), agrees=result.agrees_with_default)
                return result.events


async def in_slices(slices: Slices[Result], foreground: Foreground | None = None) -> Result:
    """Do all slices, with other events in between; return the result. At most half of the event loop's time is its own.

    While requests are expected in the foreground, slices are as short as they can be, and give way to them.
    """
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        is_expected = foreground is not None and foreground.is_expected
        try:
            for _ in range(1 if is_expected else PLACES_PER_SLICE):
                next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        worked_s = loop.time() - began
        await asyncio.sleep(worked_s)
        if foreground is not None and is_expected:
            await foreground.give_way(worked_s)


async def _ingested(turn: Turn, active: ActivePipelines) -> Turn:
    state: State = {"turn": turn}
    await active.run({INGEST: None}, state)
    return cast("Turn", state["turn"])
