"""The steps of a turn before it is stored: `memorize.ingest`, `memorize.extract_items`, and custom ones after them.

Enters: a turn as published. Leaves: the turn that is stored, and its text, analysed. Guaranteed: the turn keeps its
identity, which is that of the published one; a turn that is published again after the pipelines have changed is
prepared as it was then, so that it is known as a repetition and changes nothing.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

from agents.ports.pipelines import ActivePipelines, State
from agents.rules.index.lexical_document import is_long
from agents.rules.items.extracting import AnalysedText, extract_items
from agents.rules.memory.versions import has_same_text, identify_turn
from agents.rules.pipelines.built_in import ExtractConfig
from agents.rules.text.passages import lexical_text
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
        self, memory: Memory, active: ActivePipelines, understanding: Understanding | None = None
    ) -> AnalysedText:
        """Return the text of a memory with its items. Raises Rejected if a step fails."""
        state: State = {"memory": memory, "understanding": understanding, "items": []}
        if not active.is_on(EXTRACT_ITEMS) and is_long(lexical_text(memory)):
            # Its words are read with the items, also where these are not wanted.
            await self.read_text(memory, understanding)
        await active.run({EXTRACT_ITEMS: partial(self._extract, active)}, state)
        return AnalysedText.of(memory, understanding, state["items"])

    async def _extract(self, active: ActivePipelines, state: State) -> State:
        memory, understanding, config = state["memory"], state["understanding"], active.config(EXTRACT_ITEMS)
        if is_long(lexical_text(memory)):
            items = await self.read_text(memory, understanding)
        else:
            items = extract_items(memory, understanding)
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


async def _ingested(turn: Turn, active: ActivePipelines) -> Turn:
    state: State = {"turn": turn}
    await active.run({INGEST: None}, state)
    return cast("Turn", state["turn"])
