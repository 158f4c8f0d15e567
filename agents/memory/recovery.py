"""What was removed while its words stayed, and what it stood for: a worker was killed in between, and told nobody."""

from collections.abc import Iterator
from typing import get_args

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.events import Forgotten
from schemas.memories import EmbeddingStatus


def find_removed_but_indexed(memories: MemoryWriter, words: LexicalWriter) -> Iterator[Forgotten | None]:
    """What is to be told of each such memory; None for each other one that is looked at.

    What was forgotten is left to the command, which is given again and counts it.
    """
    for memory_id in memories.removed():
        if memory_id is not None and words.has(memory_id):
            yield Forgotten.last_in(memory_id, memories.last_place(memory_id))
        else:
            yield None


def repair_superseded_flags(memories: MemoryWriter, words: LexicalWriter) -> Iterator[None]:
    """Where something removed was found: serve again by words what it stood for, as the records have it.

    Both were written together, and what a kill has left of the words is from before. A step for each memory.
    """
    for memory_id in list(words.with_status(get_args(EmbeddingStatus))):
        memory = memories.get(memory_id)
        if memory is not None:
            roster = words.memory_columns(memory.index_name)
            if bool(roster.columns.superseded[roster.number_of[memory_id]]) != (memory.superseded_by is not None):
                words.put(LexicalDocument(memory))
        yield None
