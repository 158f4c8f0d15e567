"""Forgets memories for good, and with them what was derived from them: records, words, and by its event the vectors.

A change comes in, a step leaves for every memory, each written when it is given; between two steps others may be
handled. In place of each record a mark stays, which is read before a turn is accepted. What was derived goes before
what it was derived from, so that a change that comes again after a kill still finds it by its evidence; what a derived
memory stood for is served again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from agents.ports import Memories
from agents.rules.forgetting import (
    Said,
    conversations,
    derived,
    everything,
    in_mode,
    in_scope,
    rests_on,
    said,
    superseded,
    was_said_after,
)
from agents.rules.roster import Roster
from agents.rules.traits import ScopeItems
from agents.word_port import WordIndex
from schemas.changes import Change
from schemas.events import Forgotten
from schemas.memories import Memory, Place

Step = tuple[Memory | None, Forgotten | None]
"""A memory as it was, with the event that must follow; without an event one that is served again; or nothing."""

NOTHING: Step = (None, None)
"""Nothing was done: others may have their turn."""

Concerned = Callable[[Memory, Change], bool]
"""Whether a change is about a memory as it stands."""


class Forget:
    """The part of `Remember` that forgets."""

    def __init__(self, memories: Memories, words: WordIndex, concerned: Concerned) -> None:
        self._memories = memories
        self._words = words
        self._concerned = concerned

    def carried_out(self, change: Change, partition: int) -> Iterator[Step]:
        """Forget what a change selects, and what was derived from that."""
        gone: set[Said] = set()
        chosen: list[str] = []
        for memory in self._read(self._selected(change, partition), partition):
            if memory is not None and self._concerned(memory, change) and not was_said_after(memory, change):
                chosen.append(memory.memory_id)
                gone.update(filter(None, (said(memory),)))
            yield NOTHING
        yield from self._cascade(gone, chosen, change, partition)
        yield from self._forgotten(chosen, partition)
        # What was derived while others had their turn.
        yield from self._cascade(gone, (), change, partition)

    def unfinished(self, change: Change, partition: int) -> Iterator[Step]:
        """What has a mark and is still in the words: a worker was killed before that was safe."""
        for memory_id in [change.memory_id] if change.memory_id else everything(self._roster(change, partition)):
            if self._memories.is_forgotten(partition, memory_id):
                self._words.remove(partition, memory_id)
                yield None, _gone(memory_id, self._memories.forgotten_place(partition, memory_id))
            yield NOTHING

    def _selected(self, change: Change, partition: int) -> Iterable[str]:
        """The ids to look at: taken before the first write, as writing changes what is gone through."""
        if change.memory_id is not None:
            return [change.memory_id]
        roster, scope = self._roster(change, partition), change.scope.model_dump()
        if change.conversation_id is not None:
            return self._conversation(change.conversation_id, conversations(roster, scope), partition)
        if change.whole is not None:
            return everything(roster) if change.whole == "user" else in_scope(roster, scope)
        return in_mode(roster, change.mode)

    def _conversation(self, wanted: str, talks: Iterable[Sequence[str]], partition: int) -> Iterator[str]:
        for turns in talks:
            known = next(filter(None, self._read(turns, partition)), None)
            if known is not None and known.conversation_id == wanted:
                yield from turns

    def _cascade(
        self, gone: Collection[Said], chosen: Collection[str], change: Change, partition: int
    ) -> Iterator[Step]:
        """Forget what rests on turns that go, and serve again what only that or what is chosen stood for."""
        if change.whole is not None:
            return  # All of it is chosen.
        resting: list[str] = []
        roster, scopes = self._roster(change, partition), {scope for scope, _ in gone}
        for memory in self._read(derived(roster, scopes), partition):
            if memory is not None and rests_on(memory, gone):
                resting.append(memory.memory_id)
            yield NOTHING
        yield from self._served_again({*resting, *chosen}, scopes | {tuple(sorted(change.scope))}, change, partition)
        yield from self._forgotten(resting, partition)

    def _served_again(
        self, doomed: Collection[str], scopes: Collection[ScopeItems], change: Change, partition: int
    ) -> Iterator[Step]:
        """Take back that these stand for others: they are about to go."""
        for memory in self._read(superseded(self._roster(change, partition), scopes), partition):
            if memory is not None and memory.superseded_by in doomed and memory.memory_id not in doomed:
                served = memory.model_copy(update={"superseded_by": None})
                self._words.put(partition, served)
                self._memories.put(partition, served)
                yield served, None
            yield NOTHING

    def _forgotten(self, memory_ids: Iterable[str], partition: int) -> Iterator[Step]:
        """Forget these as they are now: they may have been written or forgotten since they were chosen."""
        for memory in self._read(memory_ids, partition):
            if memory is not None:
                place = memory.embedding.place
                self._words.remove(partition, memory.memory_id)
                self._memories.forget(partition, memory.memory_id, place)
                yield memory, _gone(memory.memory_id, place)

    def _read(self, memory_ids: Iterable[str], partition: int) -> Iterator[Memory | None]:
        return (self._memories.get(partition, memory_id) for memory_id in memory_ids)

    def _roster(self, change: Change, partition: int) -> Roster:
        return self._words.roster(partition, change.scope.boundary)


def _gone(memory_id: str, place: Place | None) -> Forgotten:
    return Forgotten(memory_id=memory_id, places=() if place is None else (place,))
