"""Find the earlier items that a turn may contradict, for the language model that reads the turn.

Enters: a turn. Leaves: at most `MAX_EARLIER_ITEMS` items of its scope that were said before it, share words with it and
may be shown to a model. Writes nothing. Guaranteed: kinds that hold together, such as rules, are never among them, nor
what another speaker said in the first person.
"""

from dataclasses import dataclass, replace

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories, Modes
from agents.rules.index.bm25 import bm25
from agents.rules.items.claims import is_replaceable
from agents.rules.items.facts import FIRST_PERSON
from agents.rules.memory.visibility import may_show_model
from agents.rules.text.sentences import parse_sentence
from agents.rules.text.tokenizer import content_terms
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, item_index_name

MAX_EARLIER_ITEMS = 8
"""Every prompt pays for them, and a model compares badly among many."""

MAX_SEARCHED_TERMS = 32
"""Words of the turn to search for: its first ones."""

_READ_PER_ITEM = 4
"""Records to read for each item that is shown: some are of a kind or of a speaker that does not fit."""


@dataclass(frozen=True, slots=True)
class EarlierItems:
    """Reads the items near a turn."""

    words: LexicalIndex
    memories: Memories
    modes: Modes

    def near(self, turn: Memory) -> list[Memory]:
        """Return the items near a turn, those of its mode first, then the nearest.

        They are the current ones, and those that the turn has superseded itself: without the latter a turn that is
        understood again would give back what it had replaced.
        """
        index_name = item_index_name(turn.boundary)
        terms = content_terms(turn.text)[:MAX_SEARCHED_TERMS]
        columns = self.words.memory_columns(index_name)
        if not terms or not columns.documents:
            return []
        where = MemoryFilter(
            boundary=index_name,
            scope={name: (value,) for name, value in turn.scope.items()},
            until_ms=turn.occurred_ms + 1,
        )
        scores = bm25(self.words.postings(index_name, terms), columns.columns.lengths, columns.documents)
        scores[~columns.admitted(where, include_superseded=True)] = 0.0
        # An item is replaced in its own mode alone, so those of the turn's come first. The answer may move the turn.
        of_mode = columns.admitted(replace(where, modes=(turn.mode,)), include_superseded=True)
        ranked = np.lexsort((-columns.columns.occurred_ms, -scores, ~of_mode, scores <= 0))
        order = ranked[: MAX_EARLIER_ITEMS * _READ_PER_ITEM]
        ids = [columns.id_of[number] for number in order.tolist() if scores[number] > 0]
        items = (self.memories.get(memory_id) for memory_id in ids)
        return [item for item in items if item is not None and self._is_comparable(item, turn)][:MAX_EARLIER_ITEMS]

    def _is_comparable(self, item: Memory, turn: Memory) -> bool:
        is_of_turn = any(one.memory_id == turn.memory_id for one in item.evidence)
        is_current = item.superseded_by is None or item.superseded_by in turn.items
        if (
            is_of_turn
            or not is_current
            or not is_replaceable(item)
            or not may_show_model(item, self.modes.get(turn.boundary))
        ):
            return False
        is_same_speaker = (item.role, item.speaker) == (turn.role, turn.speaker)
        return is_same_speaker or not FIRST_PERSON.search(parse_sentence(item.text).spaced)
