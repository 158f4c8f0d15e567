"""Memories that a killed worker was writing: what it was doing with them is completed.

Enters: a partition that has arrived. Leaves: their words, as their records are; `Remembered` for a vector that is due,
`Forgotten` for one of a memory that is gone. A record may be ahead of its words and of its events, and handling the
same record of a topic again changes nothing that is in its final state, so nothing else would complete it. But that the
words are behind is also how a command that is delivered again finds what it has not finished. So this happens when all
records that the worker may have been handling are handled.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.memory.embedding_status import is_in_flight
from schemas.internal.events import Forgotten, Remembered
from streams.flow.stores.tables import LexicalStore, MemoryStore
from streams.flow.support.awaiting import await_all

NotifyIndexer = Callable[[Remembered | Forgotten, int], Awaitable[Awaitable[object]]]
"""Sends an event to the indexer of a partition; returns what to await."""


class InterruptedWords:
    """Partitions with such memories in, their words and events written."""

    def __init__(self, memories: MemoryStore, words: LexicalStore, notify: NotifyIndexer) -> None:
        self._memories = memories
        self._words = words
        self._notify = notify
        self._ends: dict[int, Mapping[str, int]] = {}

    def arrive(self, partition: int, ends: Mapping[str, int]) -> None:
        """Note a partition, and for each topic the offset up to which its records are to be handled before."""
        self._ends[partition] = ends

    async def complete(self, partition: int) -> None:
        """Write words and events, once it is time. To be called before a commit, in the lock that changes hold."""
        if partition not in self._ends or not self._is_time(partition):
            return
        await await_all([await self._notify(event, partition) for event in self._events(partition)])
        self._words.clear_interrupted(partition)
        del self._ends[partition]

    def _events(self, partition: int) -> Iterator[Remembered | Forgotten]:
        """Write the words of each memory; yield the event that may not have been published."""
        for memory_id in self._words.interrupted(partition):
            memory = self._memories.get(partition, memory_id)
            if memory is not None:
                self._words.put(partition, LexicalDocument(memory))
                if is_in_flight(memory):
                    yield Remembered(memory=memory)
                continue
            self._words.remove(partition, memory_id)
            if self._memories.is_removed(partition, memory_id):
                yield Forgotten.last_in(memory_id, self._memories.last_place(partition, memory_id))

    def _is_time(self, partition: int) -> bool:
        applied = self._words.applied(partition)
        return all(applied.get(topic, 0) >= end for topic, end in self._ends[partition].items())
