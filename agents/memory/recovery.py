"""Crash recovery: memories that were removed from the table and are still in the lexical index."""

from collections.abc import Iterator
from typing import get_args

from modestream_client.vocabulary import EmbeddingStatus

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.internal.events import Forgotten


def find_removed_but_indexed(memories: MemoryWriter, words: LexicalWriter) -> Iterator[Forgotten | None]:
    """Yield the event to publish for each such memory; None for every other row, as a place to pause.

    Forgotten memories are left to their command, which is redelivered and counts them.
    """
    for memory_id in memories.removed():
        if memory_id is not None and words.has(memory_id):
            yield Forgotten.last_in(memory_id, memories.last_place(memory_id))
        else:
            yield None


def repair_superseded_flags(memories: MemoryWriter, words: LexicalWriter) -> Iterator[None]:
    """Re-index each memory with another superseded flag, or in another index, than its record; yields a step for each.

    Only needed after `find_removed_but_indexed` found one: sources are restored when their distilled memory is removed.
    """
    for memory_id in list(words.with_status(get_args(EmbeddingStatus))):
        memory = memories.get(memory_id)
        if memory is not None:
            columns, document = words.memory_columns(memory.index_name), LexicalDocument(memory)
            number = columns.number_of.get(memory_id)
            if number is None or bool(columns.columns.superseded[number]) != document.is_superseded:
                words.put(document)
        yield None
