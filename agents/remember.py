"""Keeps the memories: the only writer of their records and of the word index.

Turns come in, in the order of their partition; each is a record and can be found by its words when `turn` returns.
What the indexer did comes in as `Embedded` and moves the embedding status; what was understood comes in as
`Understood` and may move the mode; what a command changes comes in as a `Change`. Everything is an overwrite under a
deterministic id: the same input again, after a kill or a replay, leaves the same state. No method awaits: one event is
handled at a time. All return the events that must follow.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.forget import Forget
from agents.mode_spaces import ModeSpaces
from agents.ports import Memories, Modes
from agents.rules.embedding_status import (
    awaiting,
    embedded,
    is_on_its_way,
    is_waiting,
    outdated,
    place_left_behind,
    written_place,
)
from agents.rules.forgetting import in_mode
from agents.rules.precedence import Decision, first_mode, mode_after_answer
from agents.rules.readings import is_read, with_interaction, with_understanding
from agents.rules.versions import Identity, identity, is_outdated, is_redelivered, is_repeated, moved, next_memory
from agents.word_port import WordIndex
from schemas.changes import Change
from schemas.events import Embedded, Forgotten, Remembered, Understood
from schemas.memories import Memory, Place
from schemas.modes import GENERAL, Declared, ModeSource
from schemas.moments import moment_of
from schemas.records import Record
from schemas.scopes import PROJECT
from schemas.turns import Turn, TurnAccepted

Follows = Remembered | Forgotten | None
"""The event that must follow a write, if any."""

Step = tuple[Memory | None, Follows]
"""A memory that was changed, with what must follow; or neither, and others may have their turn."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a turn became, and the event that must follow, if any."""

    result: TurnAccepted
    event: Remembered | None
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """The event that must follow what was understood; whether a model agrees with the default, None without a model."""

    event: Follows = None
    agrees: bool | None = None


class Remember:
    """Turns in, records and word index written, `Remembered` and `Forgotten` out."""

    def __init__(
        self, memories: Memories, words: WordIndex, modes: Modes, spaces: ModeSpaces, *, asks_model: bool = False
    ) -> None:
        """Take the ports; `asks_model`: whether a language model is to read every turn."""
        self._memories = memories
        self._words = words
        self._modes = modes
        self._spaces = spaces
        self._asks_model = asks_model
        self._forget = Forget(memories, words, _is_concerned)

    def turn(self, turn: Turn, record: Record) -> Accepted:
        """Accept a turn. Raises Rejected where its mode is not declared."""
        who = identity(turn, moment_of(record.timestamp_ms))
        known = self._memories.get(record.partition, who.memory_id)
        if known is not None and is_repeated(known, who):
            return self._again(known, record)
        if known is not None and is_outdated(known, who, record.offset):
            return Accepted(_result(known, duplicate=False), None)
        if known is None and self._memories.is_forgotten(record.partition, who.memory_id):
            return Accepted(_forgotten(turn, who), None, forgotten=True)
        declared = self._modes.get(record.partition, turn.scope.boundary)
        mode = first_mode(turn.mode, turn.scope.project_id, declared, known)
        memory = next_memory(turn, who, known, mode, record.offset, asks_model=self._asks_model)
        memory = _with_decay(memory, declared)
        self._write(record.partition, memory)
        return Accepted(_result(memory, duplicate=False), Remembered(memory=memory))

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
        if mode != read.mode:
            return Noted(self._move(read, (mode, source), partition), agrees)
        stays = read.model_copy(update={"mode_source": source})
        self._write(partition, stays)
        # An answer that comes again may have moved it, and then the worker was killed before it told the indexer.
        untold = answered is not None and memory.reading.status == "model" and is_on_its_way(stays)
        return Noted(Remembered(memory=stays) if untold else None, agrees)

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
        for memory_id in self._concerned(change, partition):
            memory = self._memories.get(partition, memory_id)
            if memory is None or not _is_concerned(memory, change):
                continue
            if change.action == "stale":
                stale = outdated(memory)
                self._write(partition, stale)
                yield stale, None
            elif change.to is not None:
                yield self._put_into(change.to, "caller" if change.memory_id else memory.mode_source, memory, partition)

    def _concerned(self, change: Change, partition: int) -> list[str]:
        """The ids to look at: taken before the first write, as writing changes what is gone through."""
        if change.memory_id is not None:
            return [change.memory_id]
        return in_mode(self._words.roster(partition, change.scope.boundary), change.mode)

    def _again(self, known: Memory, record: Record) -> Accepted:
        """A turn whose text stands already: written once more if this very record made it, else left alone.

        A worker that was killed may have written its own disk and not yet Kafka.
        """
        redelivered = is_redelivered(known, record.offset)
        if redelivered:
            self._write(record.partition, known)
        waits = redelivered and known.embedding.status == "pending"
        return Accepted(_result(known, duplicate=not redelivered), Remembered(memory=known) if waits else None)

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

    def _move(self, memory: Memory, mode: Decision, partition: int) -> Remembered:
        there = _with_decay(moved(memory, mode), self._modes.get(partition, memory.boundary))
        self._write(partition, there)
        return Remembered(memory=there)

    def _put_into(self, mode: str, source: ModeSource, memory: Memory, partition: int) -> Step:
        """Put a memory into a mode; one that is there already needs no new vector."""
        if memory.mode != mode:
            event = self._move(memory, (mode, source), partition)
            return event.memory, event
        same = memory.model_copy(update={"mode_source": source})
        self._write(partition, same)
        # It may have been moved by this very change, before a worker was killed.
        return same, Remembered(memory=same) if is_on_its_way(same) else None

    def _write(self, partition: int, memory: Memory) -> None:
        # The words first: if they can't be written, the record says so when all of it is tried again.
        self._words.put(partition, memory)
        self._memories.put(partition, memory)


def _with_decay(memory: Memory, declared: Declared) -> Memory:
    mode = declared.find(memory.mode, memory.scope[PROJECT])
    return memory if mode is None else memory.model_copy(update={"decay": mode.decay})


def _is_concerned(memory: Memory, change: Change) -> bool:
    """Whether a change is still to be made: it may come again, and others may have been there before."""
    if change.whole == "user":
        return memory.boundary == change.scope.boundary
    if change.memory_id or change.conversation_id or change.whole:
        return memory.scope == change.scope.model_dump()
    if memory.scope[PROJECT] in change.except_projects or change.project not in (None, memory.scope[PROJECT]):
        return False
    return memory.mode in (change.mode, change.to)


def _forgotten(turn: Turn, who: Identity) -> TurnAccepted:
    """What a turn that was forgotten is answered with: it stays so, and nothing is kept of it."""
    return TurnAccepted(
        memory_id=who.memory_id,
        turn_id=who.turn_id,
        mode=turn.mode or GENERAL,
        mode_source="caller" if turn.mode else "fallback",
        version=1,
        duplicate=True,
    )


def _result(memory: Memory, *, duplicate: bool) -> TurnAccepted:
    return TurnAccepted(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        mode=memory.mode,
        mode_source=memory.mode_source,
        version=memory.version,
        duplicate=duplicate,
    )
