"""What stands inside a hit: the items of a turn that the question is about, and the sources of what was distilled.

Guaranteed: nothing is shown of a memory that is gone. How many records are read is bounded.
"""

from collections.abc import Iterable

from agents.ports.stores import Memories
from agents.rules.answer.matching_items import match_items, rank_evidence
from agents.rules.answer.term_coverage import TermCoverage
from schemas.memories import Evidence, Memory
from schemas.retrieval import Hit, RetrieveRequest

MAX_INSPECTED_ITEMS = 200
"""Items that are looked at for one answer, those of the best hits first, some 60 us each: most turns have none or one,
a turn with a long page has one for each of its segments."""

MAX_SOURCES = 50
"""Sources of one distilled memory that are compared with the question. The others follow in the order they have."""


class HitDetails:
    """Reads what stands inside the hits of one question. Awaits nothing; the best hit comes first."""

    def __init__(self, memories: Memories, request: RetrieveRequest, sought: TermCoverage) -> None:
        self._memories = memories
        self._request = request
        self._sought = sought
        self._left = MAX_INSPECTED_ITEMS

    def with_details(self, hit: Hit, memory: Memory, *, speaks: bool) -> Hit:
        """The hit of this memory with its inside; `speaks`: it has a word of the question, so its items may."""
        if memory.origin == "distilled":
            return hit.model_copy(update={"evidence": self._evidence(memory)})
        if memory.origin == "said" and memory.items and speaks:
            looked_at = memory.items[: self._left]
            self._left -= len(looked_at)
            inside = match_items(self._records(looked_at), self._request, self._sought)
            return hit.model_copy(update={"items": inside})
        return hit

    def _evidence(self, memory: Memory) -> tuple[Evidence, ...]:
        """The evidence whose turns are there, best first."""
        ids = dict.fromkeys(one.memory_id for one in memory.evidence if one.memory_id is not None)
        texts = {one.memory_id: one.text for one in self._records(list(ids)[:MAX_SOURCES])}
        gone = set(list(ids)[:MAX_SOURCES]) - set(texts)
        return rank_evidence([one for one in memory.evidence if one.memory_id not in gone], texts, self._sought)

    def _records(self, memory_ids: Iterable[str]) -> list[Memory]:
        """The records that are there, in the order of their ids."""
        found = (self._memories.get(memory_id) for memory_id in memory_ids)
        return [memory for memory in found if memory is not None]
