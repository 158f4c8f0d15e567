"""`Remember` on its topics: turns, and the events of the indexer, of language models and of consolidations.

An applied record is visible to readers at once. Its changelog writes and events are awaited before it is acknowledged;
`CommittingStep` commits the lexical index. Records of one topic are applied in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember, TurnResult
from agents.rules.index.indexed_words import indexed_words, is_long
from agents.rules.text.embedding_text import whole_text
from schemas.failures import RowTooLarge
from schemas.internal.consolidation import Consolidated, Distilled, ItemsMerged
from schemas.internal.events import Embedded, Understood
from schemas.messages.records import Record
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.messages.turns import Turn
from streams.flow.requests.channel import HandlerResult, ReplyOptions
from streams.flow.requests.events import EventReader, derived_events
from streams.flow.stores.stores import Stores
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.support.lexical_commit import STORAGE_TIMEOUT_S
from streams.flow.support.publisher import Publisher
from streams.observability.metrics import Meters
from streams.topics import Topics

FORGOTTEN_WARNING = ReplyWarning("forgotten", "this turn was forgotten and stays so; nothing was stored")
"""The warning for a turn that was forgotten and is sent again."""

MemoryInput = Embedded | Understood | Distilled | ItemsMerged | Consolidated
"""Events that `Remember` applies. The last of a consolidation is its summary and changes nothing."""

MEMORY_EVENTS: Mapping[str, type[MemoryInput]] = {
    "embedded.v1": Embedded,
    "understood.v1": Understood,
    "distilled.v1": Distilled,
    "evolved.v1": ItemsMerged,
    "consolidated.v1": Consolidated,
}
"""Their models by schema name."""

RememberAt = Callable[[int], Remember]
"""The agent of a partition."""


class RememberTurns:
    """Handles `turn.v1`: a turn becomes a memory, found by its words when its reply is sent."""

    def __init__(self, remember_at: RememberAt, stores: Stores, topics: Topics, meters: Meters) -> None:
        self._remember_at = remember_at
        self._stores = stores
        self._topics = topics
        self._meters = meters

    async def __call__(self, turn: Turn, record: Record, _options: ReplyOptions) -> HandlerResult:
        """Store the turn. A long text is read in a thread before, so that other events run meanwhile."""
        text = whole_text(turn.content, turn.resources)
        if is_long(text):
            await asyncio.to_thread(indexed_words, text)

        async def store() -> TurnResult:
            return self._remember_at(record.partition).turn(turn, record)

        # A full disk is no reason to refuse a turn: this one and the next ones wait.
        stored = await until_available(store, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
        pending_writes = self._stores.memory_writes()
        if stored.event is not None:
            self._meters.usage.decided(stored.result.mode_source)
        warnings = (FORGOTTEN_WARNING,) if stored.forgotten else ()
        events = derived_events(self._topics, turn.scope.boundary, stored.events)
        return HandlerResult(SuccessReply(stored.result, warnings), events, pending_writes)


HasVector = Callable[[Embedded], Awaitable[bool]]
"""True if the vector that an event reports is in the index."""


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
        publisher: Publisher,
        topics: Topics,
        meters: Meters,
        *,
        worker_run_id: str = "",
        has_vector: HasVector | None = None,
    ) -> None:
        """Without `has_vector` reported vectors are not verified."""
        self._reader = reader
        self._remember_at = remember_at
        self._stores = stores
        self._publisher = publisher
        self._topics = topics
        self._meters = meters
        self._worker_run_id = worker_run_id
        self._has_vector = has_vector

    async def __call__(self, record: Record) -> Awaitable[object]:
        """Apply one event; return what to await."""
        event = await self._verified(await self._reader.read(record), record.partition)

        async def apply() -> Sequence[MemoryEvent]:
            return [] if event is None else self._apply(event, self._remember_at(record.partition))

        try:
            events = await until_available(apply, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
        except RowTooLarge as error:
            await self._reader.reject(record, error)
            events = ()
        pending_writes = self._stores.memory_writes()
        boundary = (record.key or b"").decode()
        sent = [await self._publisher.send(out) for out in derived_events(self._topics, boundary, events)]
        return await_all([*pending_writes, *sent])

    async def _verified(self, event: MemoryInput | None, partition: int) -> MemoryInput | None:
        """Return the event; as `stale` if it reports a vector that the index does not have."""
        lookup = self._has_vector
        if lookup is None or not isinstance(event, Embedded) or not self._needs_lookup(event, partition):
            return event
        is_there = await until_available(partial(lookup, event), "vector index", self._meters)
        return event if is_there else event.model_copy(update={"status": "stale"})

    def _needs_lookup(self, event: Embedded, partition: int) -> bool:
        """True if an event of another process would make a memory ready."""
        if event.status != "ready" or event.run == self._worker_run_id:
            return False
        memory = self._stores.memories.get(partition, event.memory_id)
        return memory is not None and (memory.mode, memory.content_hash) == (event.mode, event.content_hash)

    def _apply(self, event: MemoryInput, remember: Remember) -> Sequence[MemoryEvent]:
        match event:
            case Consolidated():
                return []
            case Distilled() | ItemsMerged():
                return remember.consolidated(event)
            case Embedded():
                derived = remember.embedded(event)
                return [] if derived is None else [derived]
            case Understood():
                result = remember.understood(event)
                if result.agrees_with_default is not None:
                    self._meters.usage.model_answered(agrees=result.agrees_with_default)
                return result.events
