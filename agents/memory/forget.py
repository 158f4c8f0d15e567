"""Forgets memories for good, and with them what was derived from them: records, words, and by its event the vectors.

A change comes in, a step leaves for every memory, each written when it is given; between two steps others may be
handled. In place of each record a mark stays, which is read before a turn is accepted. What was derived goes before
what it was derived from, so that a change that comes again after a kill still finds it: a turn names its items and what
stands for it. Items that other turns say as well stay, with what those say; what a distilled memory stood for is served
again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from agents.memory.items import KeepItems, MemoryEvent, forgotten_event
from agents.memory.write_memory import WriteMemory
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.cues.has_signals import has_signals
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.memory.forgetting import (
    is_distilled_from,
    list_conversations,
    list_ids,
    list_ids_in_mode,
    list_ids_in_scope,
    list_ids_with_scope,
    list_superseded_ids,
    was_published_after,
)
from agents.rules.memory.superseding import restore_source
from schemas.changes import Change
from schemas.events import Forgotten, Learned
from schemas.memories import Memory, index_names, item_index_name

WriteStep = tuple[Memory | None, Sequence[MemoryEvent]]
"""A memory as it was, with what must follow; without a `Forgotten` one that is served again; or nothing."""

NO_STEP: WriteStep = (None, ())
"""Nothing was done: others may have their turn."""

ChangePredicate = Callable[[Memory, Change], bool]
"""Whether a change is about a memory as it stands."""


class ForgetMemories:
    """The part of `Remember` that forgets."""

    def __init__(
        self,
        memories: MemoryWriter,
        words: LexicalWriter,
        items: KeepItems,
        write: WriteMemory,
        concerned: ChangePredicate,
    ) -> None:
        self._memories = memories
        self._words = words
        self._items = items
        self._write = write
        self._concerned = concerned

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Forget what a change selects, and what was derived from that."""
        chosen: dict[str, None] = {}
        named: dict[str, None] = {}
        for memory in self._read(self._selected(change)):
            if memory is not None and self._concerned(memory, change) and not was_published_after(memory, change):
                chosen[memory.memory_id] = None
                named |= dict.fromkeys(memory.items)
            yield NO_STEP
        # All at once: an item that many of them say is written once.
        yield from self._items.withdraw_supports(named, chosen)
        yield from self._forgotten(chosen, chosen)
        if change.mode is not None:
            yield from self._put_there(change)

    def finish_interrupted(self, change: Change) -> Iterator[WriteStep]:
        """What is no more and is still in the words: a worker was killed before that was safe."""
        if change.memory_id is not None and not self._memories.is_removed(change.memory_id):
            return
        rosters = [self._words.memory_columns(shelf) for shelf in index_names(change.scope.boundary)]
        for memory_id, scope in list(chain.from_iterable(map(list_ids_with_scope, rosters))):
            if self._memories.is_removed(memory_id):
                self._words.remove(memory_id)
                left = Forgotten.last_in(memory_id, self._memories.last_place(memory_id))
                # What it said is not known any more: who keeps something of it looks what he has to let go.
                yield None, (left, Learned(memory_id=memory_id, scope=scope))
            yield NO_STEP

    def _selected(self, change: Change) -> Iterable[str]:
        """The ids to look at: taken before the first write, as writing changes what is gone through."""
        if change.memory_id is not None:
            return [change.memory_id]
        roster, scope = self._roster(change), change.scope.model_dump()
        if change.conversation_id is not None:
            return self._conversation(change.conversation_id, list_conversations(roster, scope))
        if change.whole is not None:
            return list_ids(roster) if change.whole == "user" else list_ids_in_scope(roster, scope)
        return list_ids_in_mode(roster, change.mode)

    def _conversation(self, wanted: str, talks: Iterable[Sequence[str]]) -> Iterator[str]:
        for turns in talks:
            known = next(filter(None, self._read(turns)), None)
            if known is not None and known.conversation_id == wanted:
                yield from turns

    def _put_there(self, change: Change) -> Iterator[WriteStep]:
        """Forget the items that somebody has put into a mode that goes, and whose turns are elsewhere."""
        roster = self._words.memory_columns(item_index_name(change.scope.boundary))
        for item in self._read(list_ids_in_mode(roster, change.mode)):
            if item is not None and self._concerned(item, change):
                yield from self._forgotten([item.memory_id], ())
            yield NO_STEP

    def _forgotten(self, memory_ids: Iterable[str], doomed: Collection[str]) -> Iterator[WriteStep]:
        """Forget these as they are now: they may have been written or forgotten since they were chosen."""
        for memory_id in memory_ids:
            # Others may have been handled since: what rests on it is asked for last.
            while (memory := self._memories.get(memory_id)) is not None:
                derived = next(self._derived(memory, doomed), None)
                if derived is None:
                    yield memory, self._marked(memory)
                    break
                yield derived

    def _derived(self, memory: Memory, doomed: Collection[str]) -> Iterator[WriteStep]:
        """What still rests on a memory, or is hidden by it: each is written when it is given."""
        if memory.origin == "said":
            yield from self._items.withdraw_supports(memory.items, (memory.memory_id,))
            # What stands for another goes before that, which is found by it no more.
            for over in reversed(list(self._standing_for(memory))):
                yield from self._derived(over, doomed)
                yield over, self._marked(over)
        for hidden in self._hidden(memory):
            if hidden.origin == "extracted":
                yield hidden, self._marked(hidden)
            elif hidden.memory_id not in doomed:
                yield self._served_again(hidden)

    def _standing_for(self, memory: Memory) -> Iterator[Memory]:
        """What was distilled from a turn and stands for it, and what stands for that."""
        over = memory
        while over.superseded_by is not None:
            above = self._memories.get(over.superseded_by)
            if above is None or not is_distilled_from(above, memory):
                return
            yield above
            over = above

    def _hidden(self, memory: Memory) -> Iterator[Memory]:
        """What a consolidation has put this memory in the place of: turns, or items that say the same."""
        if memory.origin == "distilled":
            ids: Iterable[str] = dict.fromkeys(filter(None, (one.memory_id for one in memory.evidence)))
        elif memory.origin == "extracted":
            ids = list_superseded_ids(self._words.memory_columns(memory.index_name), memory.scope)
        else:
            ids = ()
        for hidden in self._read(ids):
            if hidden is not None and hidden.superseded_by == memory.memory_id and hidden.superseded_in is not None:
                yield hidden

    def _served_again(self, memory: Memory) -> WriteStep:
        served = restore_source(memory)
        self._write(served)
        return served, ()

    def _marked(self, memory: Memory) -> Sequence[MemoryEvent]:
        """Put a mark in place of a memory; returns what must follow."""
        if memory.origin == "extracted":
            return self._items.forget_item(memory)
        self._words.remove(memory.memory_id)
        self._memories.forget(memory.memory_id, memory.embedding.place)
        # Something may be left of what a turn said before it was edited.
        told = has_signals(memory) or memory.version > 1 or memory.origin == "distilled"
        return [forgotten_event(memory), *([Learned(memory_id=memory.memory_id, scope=memory.scope)] if told else [])]

    def _read(self, memory_ids: Iterable[str]) -> Iterator[Memory | None]:
        return (self._memories.get(memory_id) for memory_id in memory_ids)

    def _roster(self, change: Change) -> MemoryColumns:
        return self._words.memory_columns(change.scope.boundary)
