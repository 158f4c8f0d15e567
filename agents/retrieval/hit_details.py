"""Details of hits: the items of a turn that match the question, and the sources of a distilled memory.

Nothing of a missing memory is shown. The number of records that are read is bounded.
"""

from collections.abc import Iterable

from agents.ports.stores import Memories
from agents.rules.answer.term_coverage import TermCoverage, match_items, rank_evidence
from schemas.memories import Evidence, Memory
from schemas.retrieval import Hit, RetrieveRequest

MAX_INSPECTED_ITEMS = 200
"""Items that are read for one answer, those of the best hits first, some 60 us each: most turns have none or one, a
turn with a long page has one for each chunk."""

MAX_SOURCES = 50
"""Sources of one distilled memory that are ranked by the question; the others follow in their stored order."""


class HitDetails:
    """Adds details to the hits of one question, in their order. Awaits nothing."""

    def __init__(self, memories: Memories, request: RetrieveRequest, coverage: TermCoverage) -> None:
        self._memories = memories
        self._request = request
        self._coverage = coverage
        self._left = MAX_INSPECTED_ITEMS

    def with_details(self, hit: Hit, memory: Memory, *, has_terms: bool) -> Hit:
        """Return a hit with its details; `has_terms`: the turn has a term of the question, so its items may match."""
        if memory.origin == "distilled":
            return hit.model_copy(update={"evidence": self._evidence(memory)})
        if memory.origin == "said" and memory.items and has_terms:
            read = memory.items[: self._left]
            self._left -= len(read)
            return hit.model_copy(update={"items": match_items(self._records(read), self._request, self._coverage)})
        return hit

    def _evidence(self, memory: Memory) -> tuple[Evidence, ...]:
        """Return the evidence of existing turns, best first."""
        ids = dict.fromkeys(one.memory_id for one in memory.evidence if one.memory_id is not None)
        texts = {one.memory_id: one.text for one in self._records(list(ids)[:MAX_SOURCES])}
        missing = set(list(ids)[:MAX_SOURCES]) - set(texts)
        return rank_evidence([one for one in memory.evidence if one.memory_id not in missing], texts, self._coverage)

    def _records(self, memory_ids: Iterable[str]) -> list[Memory]:
        """Return the existing records, in the order of the ids."""
        found = (self._memories.get(memory_id) for memory_id in memory_ids)
        return [memory for memory in found if memory is not None]
