"""Change memories in one way each: move them to modes, show or hide them, release their former vectors.

Enters: a change, with ids or all memories of a mode. Idempotent: a repeated change changes no record, and publishes
again the events that a killed worker may have missed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from agents.memory.items import KeepItems, WriteStep
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import Memories, Modes
from agents.rules.cues.labels import has_signals
from agents.rules.items.item_merging import apart_from
from agents.rules.memory.embedding_status import is_in_flight, mark_stale, replace_held
from agents.rules.memory.understanding import restore_source
from agents.rules.memory.versions import move_to_mode
from agents.rules.memory.visibility import (
    awaits_indexer,
    is_affected,
    list_ids_in_mode,
    mode_visibility,
    own_after_change,
    with_visibility,
)
from agents.rules.modes.declaring import ModeChoice, with_decay, with_mode_source
from schemas.internal.changes import Change
from schemas.internal.events import Released, Remembered
from schemas.state.memories import Memory, all_item_index_names, turn_index_names

# Give up the vectors of the embedder that a mode had before, for all memories of the mode.
#
# Idempotent: every memory's event is published again by a repeated change, as a killed worker may have published none.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleaseVectors:
    """The part of `Remember` that applies `release`."""

    memories: Memories
    words: LexicalWriter
    write: WriteMemory
    spaces: VectorSpaces

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield each memory that has a vector, without those in other spaces than its mode's present one."""
        for memory in affected_memories(change, self.memories, self.words):
            held = memory.embedding.held
            # Another embedder may have been declared since: its change decides which vectors are kept.
            if memory.embedding.place is None or (held and self.spaces.has_former(memory)):
                continue
            # The space of the vector that is due, if a memory that waits for it holds that space already.
            due = self.spaces.digest(memory) if held else None
            released = replace_held(memory, tuple(digest for digest in held if digest == due))
            if released is not memory:
                self.write(released)
            yield released, (Released(memory=released),)


# Set what filters memories: by their ids, or all of a mode as it is declared now.
#
# A turn's items are rebuilt with its visibility. A distilled memory of a turn whose visibility changes alone is
# withdrawn, as it has the turn's text. Idempotent: a repeated change changes no record, and publishes again the events
# that a killed worker may have missed.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SetVisibility:
    """The part of `Remember` that applies `filter` and `stale`.

    `asks_model`: a language model will be asked about turns that are not private.
    """

    modes: Modes
    items: KeepItems
    supersede: Supersede
    write: WriteMemory
    _: KW_ONLY
    asks_model: bool

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        """Write a memory as a change demands; with `stale`, its vector is due in another space."""
        of_mode = mode_visibility(memory, self.modes.get(memory.boundary))
        updated = with_visibility(memory, own_after_change(memory, change), of_mode, asks_model=self.asks_model)
        # What is in flight is asked for again below: in the space that is due then, and after its vector was removed.
        if change.action == "stale" and updated.visibility.searchable and not is_in_flight(updated):
            updated = mark_stale(updated)
            if updated.visibility == memory.visibility:
                self.write(updated)
                return updated, ()
        if change.ids and updated != memory and (released := self.supersede.release(memory)):
            written, events = self._rewrite(restore_source(updated), memory)
            return written, [*released, *events]
        return self._rewrite(updated, memory)

    def _rewrite(self, updated: Memory, before: Memory) -> WriteStep:
        """Write a memory with its items; an item alone."""
        if updated.origin == "extracted":
            return self.items.put_item(updated, before)
        written, events = self.items.write_turn(updated, self.items.turn_supports(before))
        due = [Remembered(memory=written)] if awaits_indexer(written) else []
        has_derived = written.origin == "distilled" or written.items or has_signals(written)
        return written, [*due, *events, *([self.items.learned_event(written)] if has_derived else [])]


def affected_memories(change: Change, memories: Memories, words: LexicalWriter) -> Iterator[Memory]:
    """Yield the memories to change, selected before the first: memories stored meanwhile come from later turns.

    Turns before items: a turn's items are rebuilt with it; the remaining ones were moved on their own.
    """
    boundary = change.scope.boundary
    turns, items = turn_index_names(boundary), all_item_index_names(boundary)
    selected = [(names, _candidates(change, words, names)) for names in (turns, items)]
    for names, memory_ids in selected:
        remaining = set(_candidates(change, words, names))
        for memory in map(memories.get, filter(remaining.__contains__, memory_ids)):
            is_here = memory is not None and (memory.origin == "extracted") is (names == items)
            if memory is not None and is_here and memory.boundary == boundary and is_affected(memory, change):
                yield memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Move:
    """The part of `Remember` that moves memories between modes.

    `asks_model`: a language model will be asked about turns that are not private.
    """

    modes: Modes
    items: KeepItems
    supersede: Supersede
    _: KW_ONLY
    asks_model: bool

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        assert change.to is not None
        if not change.ids:
            return self._move((change.to, memory.mode_source), memory)
        # A turn that moves alone leaves its distilled memory; in a move of the whole mode that moves along.
        released = self.supersede.release(memory) if memory.mode != change.to else []
        restored = restore_source(memory) if released else memory
        written, events = self._move((change.to, "caller"), restored)
        if written is not None and written.origin == "extracted":
            self.items.name_apart(written)
        return written, [*released, *events]

    def into(self, mode: ModeChoice, memory: Memory) -> Memory:
        """Return the memory in another mode; writes nothing."""
        declared = self.modes.get(memory.boundary)
        moved = with_decay(move_to_mode(memory, mode), declared)
        of_mode = mode_visibility(moved, declared)
        return with_visibility(moved, memory.own_visibility, of_mode, asks_model=self.asks_model)

    def _move(self, mode: ModeChoice, memory: Memory) -> WriteStep:
        """Write a memory in a mode; if it is there already, it needs no new vector.

        A turn's items are rebuilt in its mode. An item moves alone, and stays while its turns stay in theirs.
        """
        moved = with_mode_source(mode[1], memory) if memory.mode == mode[0] else self.into(mode, memory)
        if moved.origin == "extracted":
            of_turn = memory.item.turn_mode if memory.item else None
            return self.items.put_item(apart_from(of_turn or memory.mode, moved), memory)
        moved, events = self.items.write_turn(moved, self.items.turn_supports(moved))
        learned = [self.items.learned_event(moved)] if moved.items else []
        # A memory that is there already may have been moved by this same change before a worker was killed.
        return moved, [*([Remembered(memory=moved)] if awaits_indexer(moved) else []), *events, *learned]


def _candidates(change: Change, words: LexicalWriter, index_names: Sequence[str]) -> list[str]:
    """Return the candidate ids: a snapshot, because the writes change the columns."""
    if change.ids:
        return list(change.ids)
    columns = map(words.memory_columns, index_names)
    return [memory_id for indexed in columns for memory_id in list_ids_in_mode(indexed, change.mode)]
