"""Keeps the memories: the only writer of their records and of the word index.

Turns come in, in the order of their partition; each is a record and can be found by its words when `turn` returns.
What the indexer did comes in as `Embedded` and moves the embedding status; what was understood comes in as
`Understood` and may move the mode; what a command changes comes in as a `Change`. What is found in a turn is kept as
items beside it. Everything is an overwrite under a deterministic id: the same input again, after a kill or a replay,
leaves the same state. No method awaits: one event is handled at a time. All return the events that must follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.memory.claims import ResolveClaims
from agents.memory.file_items import FileItems
from agents.memory.forget import ForgetMemories
from agents.memory.items import KeepItems, MemoryEvent, WriteStep
from agents.memory.move import Move
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.claims import ClaimWriter
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter, Modes
from agents.rules.cues.has_signals import has_signals
from agents.rules.items.extracting import extract_by_rules, extract_items
from agents.rules.memory.embedding_status import (
    apply_embedded,
    awaits_model,
    is_in_flight,
    mark_pending,
    mark_stale,
    orphaned_location,
    written_location,
)
from agents.rules.memory.forgetting import is_affected, list_ids_in_mode, was_published_after
from agents.rules.memory.superseding import restore_source
from agents.rules.memory.understanding import is_about_current_text, with_interaction, with_understanding
from agents.rules.memory.versions import (
    build_acceptance,
    build_forgotten_acceptance,
    has_same_text,
    identify_turn,
    is_redelivered,
    is_stale_redelivery,
    next_memory,
)
from agents.rules.modes.precedence import mode_after_answer, mode_on_arrival, with_decay, with_mode_source
from schemas.changes import Change
from schemas.consolidation import Distilled, ItemsMerged
from schemas.events import Embedded, Forgotten, Remembered, Understood
from schemas.memories import Memory, VectorLocation, index_names
from schemas.moments import moment_of
from schemas.records import Record
from schemas.scopes import PROJECT_FIELD
from schemas.turns import Turn, TurnAccepted

DerivedEvent = Remembered | Forgotten | None
"""The event that must follow a write of one memory, if any."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn became, and what must follow: the event of the turn, if any, and those of what rests on it."""

    result: TurnAccepted
    event: Remembered | None
    item_events: tuple[MemoryEvent, ...] = ()
    forgotten: bool = False

    @property
    def events(self) -> list[MemoryEvent]:
        """All that must follow."""
        return _all_of(self.event, self.item_events)


@dataclass(frozen=True, slots=True)
class UnderstoodResult:
    """What must follow what was understood, as with a turn that is accepted.

    `agrees_with_default`: whether a model agrees with the default, None without a model.
    """

    event: DerivedEvent = None
    agrees_with_default: bool | None = None
    item_events: tuple[MemoryEvent, ...] = ()

    @property
    def events(self) -> list[MemoryEvent]:
        """All that must follow."""
        return _all_of(self.event, self.item_events)


class Remember:
    """Turns in, records and word index written, `Remembered` and `Forgotten` out."""

    def __init__(
        self,
        memories: MemoryWriter,
        words: LexicalWriter,
        modes: Modes,
        spaces: VectorSpaces,
        claims: ClaimWriter,
        *,
        asks_model: bool = False,
    ) -> None:
        """Take the ports; `asks_model`: whether a language model is to read every turn."""
        self._memories = memories
        self._words = words
        self._modes = modes
        self._spaces = spaces
        self._asks_model = asks_model
        self._write = write = WriteMemory(memories, words)
        self._items = KeepItems(memories, words, ResolveClaims(memories, claims, write), write)
        self._supersede = Supersede(memories, words, self._items, write)
        self._forget = ForgetMemories(memories, words, self._items, write, is_affected)
        self._assign = FileItems(memories, write)
        self._move = Move(modes, self._items, self._supersede)

    def turn(self, turn: Turn, record: Record) -> TurnResult:
        """Accept a turn. Raises Rejected where its mode is not declared."""
        who = identify_turn(turn, moment_of(record.timestamp_ms))
        known = self._memories.get(who.memory_id)
        if known is not None and has_same_text(known, who):
            return self._again(known, record)
        if known is not None and is_stale_redelivery(known, who, record.offset):
            return TurnResult(build_acceptance(known, duplicate=False), None)
        if known is None and self._memories.is_forgotten(who.memory_id):
            return TurnResult(build_forgotten_acceptance(turn, who), None, forgotten=True)
        declared = self._modes.get(turn.scope.boundary)
        mode = mode_on_arrival(turn.mode, turn.scope.project_id, declared, known)
        memory = next_memory(turn, who, known, mode, record.offset, asks_model=self._asks_model)
        memory = memory.model_copy(update={"items": known.items}) if known is not None and known.items else memory
        memory = with_decay(memory, declared)
        named = known is not None and has_signals(known)
        released = self._supersede.release(known)
        memory, events = self._items.replace_items(memory, extract_by_rules(memory))
        events += [*released, *self._learned(memory, named=named)]
        return TurnResult(build_acceptance(memory, duplicate=False), Remembered(memory=memory), tuple(events))

    def embedded(self, event: Embedded) -> DerivedEvent:
        """Note what became of a memory's vector; returns the event that puts right what is not as it should be."""
        place = written_location(event)
        memory = self._memories.get(event.memory_id)
        if memory is None:
            return Forgotten(memory_id=event.memory_id, places=(place,)) if place else None
        if event.mode != memory.mode:
            # It was overtaken on its way: the vector lies where nobody looks for it any more.
            return Remembered(memory=memory, strays=(place,)) if place else None
        if event.content_hash != memory.content_hash:
            # The vector of another text lies where today's was or will be, or where none can be made of today's.
            return self._embed_again(memory, place) if place else None
        return self._noted(event, with_interaction(memory, event.interaction))

    def consolidated(self, event: Distilled | ItemsMerged) -> Sequence[MemoryEvent]:
        """Write what a consolidation has found."""
        if isinstance(event, ItemsMerged):
            return self._supersede.apply_merge(event)
        return self._supersede.apply_distilled(event)

    def understood(self, event: Understood) -> UnderstoodResult:
        """Note what a turn was understood as; a model may put it into another mode, and then its vector moves."""
        memory = self._memories.get(event.memory_id)
        if memory is None or not is_about_current_text(memory, event):
            return UnderstoodResult()
        read = with_understanding(memory, event)
        answered = event.found.mode if event.found else None
        declared, project = self._modes.get(memory.boundary), memory.scope[PROJECT_FIELD]
        mode, source = mode_after_answer(read, answered, project, declared)
        agrees = mode == declared.default(project)[0] if answered and source == "model" else None
        moves = mode != read.mode
        released = self._supersede.release(memory) if moves else []
        there = restore_source(self._move.into((mode, source), read)) if moves else with_mode_source(source, read)
        if event.found is None:
            written, events = self._items.refresh_items(there, extract_by_rules(there))
        else:
            written, events = self._items.replace_items(there, extract_items(there, event.found))
            items = self._items.items_of(written)
            self._assign.apply_model_categories(items, event.found.categories)
        events += [*released, *self._learned(written, named=has_signals(memory))]
        # An answer that comes again may have moved it, and then the worker was killed before it told the indexer.
        untold = answered is not None and memory.reading.status == "model" and is_in_flight(written)
        return UnderstoodResult(Remembered(memory=written) if moves or untold else None, agrees, tuple(events))

    def changed(self, change: Change) -> Iterator[WriteStep]:
        """Carry out what a command changes, a step for one memory or for none; those done are skipped.

        Each is written when it is given, and between two steps others may be handled. The memory is as it is now, or as
        it was where it is forgotten. One that the words still have as it was had been changed before a worker was
        killed: it is told of once more.
        """
        if change.action == "forget":
            yield from self._forget.finish_interrupted(change)
            yield from self._forget.apply(change)
            return
        if change.action == "assign":
            yield from self._assign.apply(change)
            return
        # Turns before items: those of a turn are made anew in its mode, and what is left was put there by somebody.
        for shelf in index_names(change.scope.boundary):
            for memory_id in self._concerned(change, shelf):
                memory = self._memories.get(memory_id)
                if memory is None or memory.index_name != shelf or was_published_after(memory, change):
                    continue
                if is_affected(memory, change):
                    yield self._step(memory, change)

    def _concerned(self, change: Change, shelf: str) -> list[str]:
        """The ids to look at: taken before the first write, as writing changes what is gone through."""
        if change.memory_id is not None:
            return [change.memory_id]
        return list_ids_in_mode(self._words.memory_columns(shelf), change.mode)

    def _step(self, memory: Memory, change: Change) -> WriteStep:
        if change.action == "stale":
            stale = mark_stale(memory)
            self._write(stale)
            return stale, ()
        return self._move.apply(memory, change)

    def _again(self, known: Memory, record: Record) -> TurnResult:
        """A turn whose text stands already: written once more if this very record made it, else left alone.

        A worker that was killed may have written its own disk and not yet Kafka.
        """
        if not is_redelivered(known, record.offset):
            return TurnResult(build_acceptance(known, duplicate=True), None)
        known, events = self._items.refresh_items(known, extract_by_rules(known))
        # What it said before it was edited may have been told of alone.
        events += self._learned(known, named=known.version > 1)
        waits = known.embedding.status == "pending"
        return TurnResult(
            build_acceptance(known, duplicate=False), Remembered(memory=known) if waits else None, tuple(events)
        )

    def _learned(self, turn: Memory, *, named: bool = False) -> list[MemoryEvent]:
        """What those who keep more of a turn are told; `named`: whether they had something of it."""
        return [self._items.learned_event(turn)] if named or has_signals(turn) else []

    def _noted(self, event: Embedded, memory: Memory) -> DerivedEvent:
        """Note an event about today's text and mode. One about yesterday's embedder asks for today's."""
        if event.status == "again" and memory.embedding.status == "ready":
            return Remembered(memory=memory)
        if event.status in ("stale", "again"):
            return self._embed_again(memory)
        space, place = self._spaces.digest(memory), written_location(event)
        if event.status == "waiting" and space is None:
            self._write(mark_pending(memory, event.error))
            return None
        # A model that was loaded while this event was on its way has nobody else to ask it.
        if event.space != space and space is not None:
            return self._embed_again(memory, place)
        if space is None and awaits_model(memory):
            # Its vector is due in a space that is not known before the model is loaded: this one may be yesterday's.
            return Remembered(memory=memory, strays=(place,)) if place else None
        noted = apply_embedded(memory, event)
        self._write(noted)
        left = orphaned_location(memory, place)
        return Remembered(memory=noted, strays=(left,)) if left else None

    def _embed_again(self, memory: Memory, stray: VectorLocation | None = None) -> Remembered:
        waiting = mark_pending(memory)
        self._write(waiting)
        return Remembered(memory=waiting, strays=() if stray is None else (stray,))


def _all_of(event: DerivedEvent, beside: Sequence[MemoryEvent]) -> list[MemoryEvent]:
    return [*([] if event is None else [event]), *beside]
