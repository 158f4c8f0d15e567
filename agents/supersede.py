"""Writes what a consolidation has found: a distilled memory in place of its turns.

The part of `Remember` that applies `Distilled`. It checks again that every turn is there as it was distilled, standing
for itself; if one is not, nothing is done, and what a killed worker had left half done is taken back. The distilled
memory is written before its turns: between the two all of them are served, and none is lost. The same event again
changes nothing. What follows leaves as events.
"""

from collections.abc import Iterable

from agents.ports import Memories
from agents.rules.superseding import Standing, served_again, standing, superseded
from agents.word_port import WordIndex
from schemas.consolidation import Distilled
from schemas.events import Forgotten, Remembered
from schemas.memories import Memory


class Supersede:
    """The part of `Remember` that lets one memory stand for several."""

    def __init__(self, memories: Memories, words: WordIndex) -> None:
        self._memories = memories
        self._words = words

    def standing(self, event: Distilled, partition: int) -> Standing:
        """How it stands with what was distilled."""
        memory_id = event.memory.memory_id
        if self._memories.is_forgotten(partition, memory_id):
            return "refused"
        return standing(event, self._memories.get(partition, memory_id), self._sources(event, partition))

    def distilled(self, event: Distilled, partition: int) -> list[Remembered | Forgotten]:
        """Write a distilled memory, and that its turns are superseded; returns what must follow."""
        known = self._memories.get(partition, event.memory.memory_id)
        if self.standing(event, partition) == "refused":
            is_half_done = known is not None and known.item is not None and known.item.run == event.run
            return self.withdrawn(known, event.sources, partition) if known is not None and is_half_done else []
        memory = known or event.memory
        self._write(memory, partition)
        for source in self._sources(event, partition):
            if source is not None and source.superseded_by is None:
                self._write(superseded(source, event), partition)
        return [Remembered(memory=memory)] if memory.embedding.status == "pending" else []

    def released(self, turn: Memory | None, partition: int) -> list[Remembered | Forgotten]:
        """Take back what stands for a turn that is about to say something else, or to be somewhere else."""
        over = None if turn is None or turn.superseded_by is None else self._memories.get(partition, turn.superseded_by)
        if over is None or over.origin != "distilled":
            return []
        return self.withdrawn(over, [one.memory_id or "" for one in over.evidence], partition)

    def withdrawn(self, distilled: Memory, source_ids: Iterable[str], partition: int) -> list[Remembered | Forgotten]:
        """Remove a distilled memory, and serve again what it stood for."""
        for memory_id in source_ids:
            source = self._memories.get(partition, memory_id)
            if source is not None and source.superseded_by == distilled.memory_id:
                self._write(served_again(source), partition)
        place = distilled.embedding.place
        self._words.remove(partition, distilled.memory_id)
        self._memories.remove(partition, distilled.memory_id, place)
        return [Forgotten(memory_id=distilled.memory_id, places=() if place is None else (place,))]

    def _sources(self, event: Distilled, partition: int) -> list[Memory | None]:
        return [self._memories.get(partition, memory_id) for memory_id in event.sources]

    def _write(self, memory: Memory, partition: int) -> None:
        # The words first: if they can't be written, the record says so when all of it is tried again.
        self._words.put(partition, memory)
        self._memories.put(partition, memory)
