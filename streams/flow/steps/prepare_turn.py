"""Custom steps of the deployment before a turn is stored: they may change its text, and its items.

Enters: a turn as published. Leaves: the turn that is stored, and its items if they differ from what the rules find.
Guaranteed: the turn keeps its identity, which is that of the published one; a turn that is published again after the
pipelines have changed is prepared as it was then, so that it is known as a repetition and changes nothing.
"""

from dataclasses import dataclass
from typing import cast

from agents.ports.pipelines import ActivePipelines
from agents.ports.run_timer import step
from agents.rules.index.lexical_document import is_long
from agents.rules.items.extracted_item import ExtractedItem
from agents.rules.items.extracting import ReadSource, ReadText, extract_items
from agents.rules.memory.versions import has_same_text, identify_turn, memory_to_read
from agents.rules.text.passages import lexical_text, whole_text
from schemas.failures import Rejected, Unavailable
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding
from streams.backoff import until_available
from streams.flow.pipelines.in_force import EXTRACT_ITEMS, INGEST, Pipelines
from streams.flow.stores.stores import Stores
from streams.flow.text_reading import ReadLongText
from streams.observability.metrics import Meters


@dataclass(frozen=True, slots=True)
class PrepareTurns:
    """Turns in; the turns to store, and their items, out."""

    pipelines: Pipelines
    stores: Stores
    read_text: ReadLongText
    meters: Meters

    async def __call__(self, turn: Turn, record: Record) -> tuple[Turn, ReadText | None]:
        """Return the turn to store, and its items if they must be read before. Raises Rejected if a step fails.

        All of it is by the revision that is in force at the call. While the one that counts can't run here, and has a
        step that must not be skipped, it waits: Kafka holds the turns.
        """
        active = await self._in_force()
        if self.pipelines.have_prepared_turns:
            turn = await self._turn(turn, record, active)
        return turn, await self._read(turn, record, active)

    async def items(self, memory: Memory, understanding: Understanding | None = None) -> ReadText | None:
        """Return the items of a memory likewise."""
        return await self._items(memory, understanding, await self._in_force())

    async def _in_force(self) -> ActivePipelines:
        if not self.pipelines.turns_wait():
            return self.pipelines.current

        async def unless_held() -> ActivePipelines:
            if reason := self.pipelines.turns_wait():
                raise Unavailable(reason)
            return self.pipelines.current

        return await until_available(unless_held, "pipelines", self.meters)

    async def _turn(self, turn: Turn, record: Record, active: ActivePipelines) -> Turn:
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        known = self.stores.memories.get(record.partition, identity.memory_id)
        turn = turn.model_copy(update={"turn_id": identity.turn_id})
        if known is not None:
            repeated = await self._as_before(turn, known)
            if repeated is not None and has_same_text(known, identify_turn(repeated, identity.recorded_at)):
                return repeated
        return await _prepared(turn, active)

    async def _read(self, turn: Turn, record: Record, active: ActivePipelines) -> ReadText | None:
        """Return the items of a turn; None if storing it reads them."""
        if not self._reads_items(active) and not is_long(whole_text(turn.content, turn.resources)):
            return None
        recorded_at = moment_of(record.timestamp_ms)
        known = self.stores.memories.get(record.partition, identify_turn(turn, recorded_at).memory_id)
        memory = memory_to_read(turn, recorded_at, known, record.offset)
        if memory is None:
            return None
        with step(EXTRACT_ITEMS):
            return await self._items(memory, None, active)

    async def _items(
        self, memory: Memory, understanding: Understanding | None, active: ActivePipelines
    ) -> ReadText | None:
        is_large = is_long(lexical_text(memory))
        if not self._reads_items(active):
            return await self.read_text(memory, understanding) if is_large else None
        found = await self._found(memory, understanding, active, is_large=is_large)
        own = await active.run_custom(EXTRACT_ITEMS, {"memory": memory, "items": found})
        return ReadText(ReadSource.of(memory), understanding, cast("list[ExtractedItem]", own.value))

    async def _found(
        self, memory: Memory, understanding: Understanding | None, active: ActivePipelines, *, is_large: bool
    ) -> list[ExtractedItem]:
        if is_large:
            # Its words are read with the items, also where these are not wanted.
            read = await self.read_text(memory, understanding)
            return read.items if active.is_on(EXTRACT_ITEMS) else []
        return extract_items(memory, understanding) if active.is_on(EXTRACT_ITEMS) else []

    async def _as_before(self, turn: Turn, known: Memory) -> Turn | None:
        """Return the turn as the revision that made a memory prepared it; None if that can't be told any more."""
        then = await self.pipelines.at(known.revision)
        if then is None or then.custom_steps(INGEST) == self.pipelines.current.custom_steps(INGEST):
            return None
        try:
            return await _prepared(turn, then)
        except Rejected:
            return None

    @staticmethod
    def _reads_items(active: ActivePipelines) -> bool:
        return active.has_custom(EXTRACT_ITEMS) or not active.is_on(EXTRACT_ITEMS)


async def _prepared(turn: Turn, active: ActivePipelines) -> Turn:
    if not active.has_custom(INGEST):
        return turn
    return cast("Turn", (await active.run_custom(INGEST, {"turn": turn})).value)
