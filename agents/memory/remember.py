"""Keeps the memories: the only writer of their records and of the word index.

Turns come in, in the order of their partition; each is a record and can be found by its words when `turn` returns.
What the indexer did comes in as `Embedded` and moves the embedding status; what was understood comes in as
`Understood` and may move the mode; what a command changes comes in as a `Change`. What is found in a turn is kept as
items beside it. Everything is an overwrite under a deterministic id: the same input again, after a kill or a replay,
leaves the same state. No method awaits: one event is handled at a time. All return the events that must follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.memory.claims import Contradict
from agents.memory.file_items import Assign
from agents.memory.forget import Forget
from agents.memory.items import Event, KeepItems, Step
from agents.memory.move import Move
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.modes.vector_spaces import ModeSpaces
from agents.ports.claims import Claims
from agents.ports.lexical_index import WordIndex
from agents.ports.stores import Memories, Modes
from agents.rules.cues.has_signals import tells
from agents.rules.items.extracting import found_by_rules, found_in
from agents.rules.memory.acceptance import accepted, stays_forgotten
from agents.rules.memory.embedding_status import (
    awaiting,
    embedded,
    is_on_its_way,
    is_waiting,
    outdated,
    place_left_behind,
    written_place,
)
from agents.rules.memory.forgetting import in_mode, is_concerned, was_said_after
from agents.rules.memory.superseding import served_again
from agents.rules.memory.understanding import is_read, with_interaction, with_understanding
from agents.rules.memory.versions import identity, is_outdated, is_redelivered, is_repeated, next_memory
from agents.rules.modes.precedence import by, first_mode, mode_after_answer, with_decay
from schemas.changes import Change
from schemas.consolidation import Distilled, Evolved
from schemas.events import Embedded, Forgotten, Remembered, Understood
from schemas.memories import Memory, Place, shelves
from schemas.moments import moment_of
from schemas.records import Record
from schemas.scopes import PROJECT
from schemas.turns import Turn, TurnAccepted

Follows = Remembered | Forgotten | None
"""The event that must follow a write of one memory, if any."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a turn became, and what must follow: the event of the turn, if any, and those of what rests on it."""

    result: TurnAccepted
    event: Remembered | None
    beside: tuple[Event, ...] = ()
    forgotten: bool = False

    @property
    def events(self) -> list[Event]:
        """All that must follow."""
        return _all_of(self.event, self.beside)


@dataclass(frozen=True, slots=True)
class Noted:
    """What must follow what was understood, as with a turn that is accepted.

    `agrees`: whether a model agrees with the default, None without a model.
    """

    event: Follows = None
    agrees: bool | None = None
    beside: tuple[Event, ...] = ()

    @property
    def events(self) -> list[Event]:
        """All that must follow."""
        return _all_of(self.event, self.beside)


class Remember:
    """Turns in, records and word index written, `Remembered` and `Forgotten` out."""

    def __init__(
        self,
        memories: Memories,
        words: WordIndex,
        modes: Modes,
        spaces: ModeSpaces,
        claims: Claims,
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
        self._items = KeepItems(memories, words, Contradict(memories, claims, write), write)
        self._supersede = Supersede(memories, words, self._items, write)
        self._forget = Forget(memories, words, self._items, write, is_concerned)
        self._assign = Assign(memories, write)
        self._move = Move(modes, self._items, self._supersede)

    def turn(self, turn: Turn, record: Record) -> Accepted:
        """Accept a turn. Raises Rejected where its mode is not declared."""
        who = identity(turn, moment_of(record.timestamp_ms))
        known = self._memories.get(record.partition, who.memory_id)
        if known is not None and is_repeated(known, who):
            return self._again(known, record)
        if known is not None and is_outdated(known, who, record.offset):
            return Accepted(accepted(known, duplicate=False), None)
        if known is None and self._memories.is_forgotten(record.partition, who.memory_id):
            return Accepted(stays_forgotten(turn, who), None, forgotten=True)
        declared = self._modes.get(record.partition, turn.scope.boundary)
        mode = first_mode(turn.mode, turn.scope.project_id, declared, known)
        memory = next_memory(turn, who, known, mode, record.offset, asks_model=self._asks_model)
        memory = memory.model_copy(update={"items": known.items}) if known is not None and known.items else memory
        memory = with_decay(memory, declared)
        named = known is not None and tells(known)
        released = self._supersede.released(known, record.partition)
        memory, events = self._items.found(memory, found_by_rules(memory), record.partition)
        events += [*released, *self._learned(memory, record.partition, named=named)]
        return Accepted(accepted(memory, duplicate=False), Remembered(memory=memory), tuple(events))

    def embedded(self, event: Embedded, partition: int) -> Follows:
        """Note what became of a memory's vector; returns the event that puts right what is not as it should be."""
        place = written_place(event)
        memory = self._memories.get(partition, event.memory_id)
        if memory is None:
            return Forgotten(memory_id=event.memory_id, places=(place,)) if place else None
        if event.mode != memory.mode:
            # It was overtaken on its way: the vector lies where nobody looks for it any more.
            return Remembered(memory=memory, strays=(place,)) if place else None
        if event.content_hash != memory.content_hash:
            # The vector of another text lies where today's was or will be, or where none can be made of today's.
            return self._embed_again(partition, memory, place) if place else None
        return self._noted(event, with_interaction(memory, event.interaction), partition)

    def consolidated(self, event: Distilled | Evolved, partition: int) -> Sequence[Event]:
        """Write what a consolidation has found."""
        if isinstance(event, Evolved):
            return self._supersede.evolved(event, partition)
        return self._supersede.distilled(event, partition)

    def understood(self, event: Understood, partition: int) -> Noted:
        """Note what a turn was understood as; a model may put it into another mode, and then its vector moves."""
        memory = self._memories.get(partition, event.memory_id)
        if memory is None or not is_read(memory, event):
            return Noted()
        read = with_understanding(memory, event)
        answered = event.found.mode if event.found else None
        declared, project = self._modes.get(partition, memory.boundary), memory.scope[PROJECT]
        mode, source = mode_after_answer(read, answered, project, declared)
        agrees = mode == declared.default(project)[0] if answered and source == "model" else None
        moves = mode != read.mode
        released = self._supersede.released(memory, partition) if moves else []
        there = served_again(self._move.into((mode, source), read, partition)) if moves else by(source, read)
        if event.found is None:
            written, events = self._items.again(there, found_by_rules(there), partition)
        else:
            written, events = self._items.found(there, found_in(there, event.found), partition)
            items = self._items.items_of(written, partition)
            self._assign.as_a_model_said(items, event.found.categories, partition)
        events += [*released, *self._learned(written, partition, named=tells(memory))]
        # An answer that comes again may have moved it, and then the worker was killed before it told the indexer.
        untold = answered is not None and memory.reading.status == "model" and is_on_its_way(written)
        return Noted(Remembered(memory=written) if moves or untold else None, agrees, tuple(events))

    def changed(self, change: Change, partition: int) -> Iterator[Step]:
        """Carry out what a command changes, a step for one memory or for none; those done are skipped.

        Each is written when it is given, and between two steps others may be handled. The memory is as it is now, or as
        it was where it is forgotten. One that the words still have as it was had been changed before a worker was
        killed: it is told of once more.
        """
        if change.action == "forget":
            yield from self._forget.unfinished(change, partition)
            yield from self._forget.carried_out(change, partition)
            return
        if change.action == "assign":
            yield from self._assign.carried_out(change, partition)
            return
        # Turns before items: those of a turn are made anew in its mode, and what is left was put there by somebody.
        for shelf in shelves(change.scope.boundary):
            for memory_id in self._concerned(change, shelf, partition):
                memory = self._memories.get(partition, memory_id)
                if memory is None or memory.shelf != shelf or was_said_after(memory, change):
                    continue
                if is_concerned(memory, change):
                    yield self._step(memory, change, partition)

    def _concerned(self, change: Change, shelf: str, partition: int) -> list[str]:
        """The ids to look at: taken before the first write, as writing changes what is gone through."""
        if change.memory_id is not None:
            return [change.memory_id]
        return in_mode(self._words.roster(partition, shelf), change.mode)

    def _step(self, memory: Memory, change: Change, partition: int) -> Step:
        if change.action == "stale":
            stale = outdated(memory)
            self._write(partition, stale)
            return stale, ()
        return self._move.carried_out(memory, change, partition)

    def _again(self, known: Memory, record: Record) -> Accepted:
        """A turn whose text stands already: written once more if this very record made it, else left alone.

        A worker that was killed may have written its own disk and not yet Kafka.
        """
        if not is_redelivered(known, record.offset):
            return Accepted(accepted(known, duplicate=True), None)
        known, events = self._items.again(known, found_by_rules(known), record.partition)
        # What it said before it was edited may have been told of alone.
        events += self._learned(known, record.partition, named=known.version > 1)
        waits = known.embedding.status == "pending"
        return Accepted(accepted(known, duplicate=False), Remembered(memory=known) if waits else None, tuple(events))

    def _learned(self, turn: Memory, partition: int, *, named: bool = False) -> list[Event]:
        """What those who keep more of a turn are told; `named`: whether they had something of it."""
        return [self._items.learned(turn, partition)] if named or tells(turn) else []

    def _noted(self, event: Embedded, memory: Memory, partition: int) -> Follows:
        """Note an event about today's text and mode. One about yesterday's embedder asks for today's."""
        if event.status == "again" and memory.embedding.status == "ready":
            return Remembered(memory=memory)
        if event.status in ("stale", "again"):
            return self._embed_again(partition, memory)
        space, place = self._spaces.digest(memory, partition), written_place(event)
        if event.status == "waiting" and space is None:
            self._write(partition, awaiting(memory, event.error))
            return None
        # A model that was loaded while this event was on its way has nobody else to ask it.
        if event.space != space and space is not None:
            return self._embed_again(partition, memory, place)
        if space is None and is_waiting(memory):
            # Its vector is due in a space that is not known before the model is loaded: this one may be yesterday's.
            return Remembered(memory=memory, strays=(place,)) if place else None
        noted = embedded(memory, event)
        self._write(partition, noted)
        left = place_left_behind(memory, place)
        return Remembered(memory=noted, strays=(left,)) if left else None

    def _embed_again(self, partition: int, memory: Memory, stray: Place | None = None) -> Remembered:
        waiting = awaiting(memory)
        self._write(partition, waiting)
        return Remembered(memory=waiting, strays=() if stray is None else (stray,))


def _all_of(event: Follows, beside: Sequence[Event]) -> list[Event]:
    return [*([] if event is None else [event]), *beside]
