"""Read the candidates of a context at one moment. Writes nothing, awaits nothing.

Every section has memories of the context's modes alone; only safety requirements come from all modes of the scope.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from modestream_client.vocabulary import InteractionMode

from agents.context.category_summaries import CategorySummaries
from agents.context.revised_rules import RevisedRules
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.section_candidates import RETENTION_POLICIES, SectionCandidates, collect_section_candidates
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.window import estimate_turns, last_turns
from schemas.messages.assemble import AssembleRequest
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, item_index_name


class ContextSnapshot(NamedTuple):
    """The candidates of a context.

    `pins` and `turns` have the newest first; `summaries` are of categories, by their own ids; `age_of` orders ids.
    """

    candidates: SectionCandidates
    pins: list[str]
    unknown: list[str]
    turns: list[str]
    summaries: dict[str, Memory]
    age_of: Callable[[str], int]


def scope_filter(request: AssembleRequest) -> MemoryFilter:
    """Return the filter for the scope of a request, over all modes."""
    return MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())


class SnapshotReader:
    """Requests in, their candidates out."""

    def __init__(
        self,
        words: LexicalIndex,
        memories: Memories,
        capsules: CategorySummaries | None = None,
        *,
        asks_model: bool = False,
    ) -> None:
        """Without `capsules` a context has no category summaries. `asks_model`: a language model may find rules."""
        self._words = words
        self._memories = memories
        self._capsules = capsules
        self._revised_rules = RevisedRules(words, memories, asks_model=asks_model)

    def read(
        self,
        request: AssembleRequest,
        interaction: InteractionMode,
        modes: Sequence[str],
        hits: Mapping[str, float],
        today: date,
    ) -> ContextSnapshot:
        """Return the candidates; `modes` are those that the context shows, `hits` the evidence's scores, best first."""
        scope = scope_filter(request)
        where = replace(scope, modes=tuple(modes))
        memory_columns = self._words.memory_columns(scope.boundary)
        visible_set = self._revised_rules.apply(
            VisibleSet.of(memory_columns, scope, request.conversation_id).of_modes(memory_columns.admitted(where)),
            memory_columns,
            scope,
            today,
        )
        interactions = self._interactions(hits) if RETENTION_POLICIES[interaction].unwanted_interactions else {}
        count = estimate_turns(request.budget_tokens, request.format)
        turns = last_turns(memory_columns, where, request.conversation_id, count)
        age_of = visible_set.age_of(memory_columns)
        pins = self._visible(request.pins, memory_columns, visible_set.admitted, where)
        known = frozenset(pins)
        return ContextSnapshot(
            candidates=collect_section_candidates(interaction, visible_set, memory_columns, hits, interactions),
            pins=sorted(pins, key=age_of, reverse=True),
            unknown=[pin for pin in dict.fromkeys(request.pins) if pin not in known],
            turns=turns[::-1],
            summaries={} if self._capsules is None else self._capsules.about(request.query, where),
            age_of=age_of,
        )

    def _interactions(self, hits: Iterable[str]) -> dict[str, InteractionMode]:
        records = (self._memories.get(memory_id) for memory_id in hits)
        return {
            memory.memory_id: memory.reading.interaction.mode
            for memory in records
            if memory is not None and memory.reading.interaction is not None
        }

    def _visible(self, pins: Iterable[str], turns: MemoryColumns, admitted: Mask, where: MemoryFilter) -> list[str]:
        """Return the pins that the request may see, without duplicates: turns, distilled memories and items."""
        items = self._words.memory_columns(item_index_name(where.boundary))
        indexes = ((turns, admitted), (items, items.admitted(where)))
        return [
            pin
            for pin in dict.fromkeys(pins)
            if any(pin in index.number_of and mask[index.number_of[pin]] for index, mask in indexes)
        ]
