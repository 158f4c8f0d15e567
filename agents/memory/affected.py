"""Select the memories that a command changes, as their records are when each one's turn comes."""

from collections.abc import Iterator, Sequence

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import Memories
from agents.rules.memory.visibility import is_affected, list_ids_in_mode
from schemas.internal.changes import Change
from schemas.state.memories import Memory, all_item_index_names, turn_index_names


def affected_memories(change: Change, memories: Memories, words: LexicalWriter) -> Iterator[Memory]:
    """Yield the memories to change, selected before the first: what is stored meanwhile is of later turns.

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


def _candidates(change: Change, words: LexicalWriter, index_names: Sequence[str]) -> list[str]:
    """Return the candidate ids: a snapshot, because the writes change the columns."""
    if change.ids:
        return list(change.ids)
    columns = map(words.memory_columns, index_names)
    return [memory_id for indexed in columns for memory_id in list_ids_in_mode(indexed, change.mode)]
