"""Read the candidates of a context as one snapshot, after slow reads made with pauses. Writes nothing.

Every section has memories of the context's modes alone; only safety requirements come from all modes of the scope.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import NamedTuple

from modestream_client.vocabulary import InteractionMode

from agents.context.revised_rules import RevisedRules, RuleTexts
from agents.context.sizing import Pauses
from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Categories, Memories
from agents.rules.answer.drill_down import select_scopes
from agents.rules.answer.hits import TermCoverage, match_entries
from agents.rules.categories.taxonomy import category_text
from agents.rules.context.packing import estimate_turns
from agents.rules.context.section_candidates import SectionCandidates, capsule_of, collect_section_candidates
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.index.memory_columns import filtered_reader, last_turns
from agents.rules.index.vocabulary import idf
from agents.rules.text.tokenizer import content_terms
from schemas.messages.assemble import AssembleRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import milliseconds_of
from schemas.scopes import ScopeFields
from schemas.state.categories import Category
from schemas.state.memories import Memory, item_index_name

MAX_SUMMARIES = 3
"""Summaries in one context: each takes up to 150 tokens, and matches the question by words alone."""

MAX_MATCHED_CATEGORIES = 512
"""Maximum categories compared with the question: two full scopes, about 25 ms."""

MAX_SHOWN_CATEGORIES = 50
"""Maximum matching categories whose memories are read, as memories of some may have been forgotten."""

ScopedCategory = tuple[ScopeFields, Category]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CategorySummaries:
    """Questions in, capsules out."""

    words: LexicalIndex
    memories: Memories
    categories: Categories

    async def matching(self, query: str, where: MemoryFilter, pauses: Pauses) -> list[ScopedCategory]:
        """Return the categories with summaries that match a question, best first; reads them with pauses."""
        scoped: list[ScopedCategory] = []
        for scope in select_scopes(where, self.words.memory_columns(where.boundary)):
            if len(scoped) >= MAX_MATCHED_CATEGORIES:
                break
            scoped += [(scope, category) for category in self.categories.get(scope).all() if category.summary]
            await pauses.pause_if_due()
        if not scoped:
            return []
        texts = [category_text(category) for _, category in scoped[:MAX_MATCHED_CATEGORIES]]
        matches = match_entries(texts, query_coverage(query, self.words, where.boundary))
        return [scoped[match.place] for match in matches[:MAX_SHOWN_CATEGORIES]]

    def capsules(
        self, matching: Iterable[ScopedCategory], where: MemoryFilter, *, for_model: bool
    ) -> dict[str, Memory]:
        """Return the capsules by their ids, in this order; of memories in the filter's modes alone.

        `for_model`: a capsule shows nothing of private memories.
        """
        matching_memory = filtered_reader(self.memories.get, self.words.memory_columns, where)

        # A summary shows nothing of modes that the filter excludes.
        def read(memory_id: str) -> Memory | None:
            memory = matching_memory(memory_id)
            if memory is None or (for_model and memory.visibility.private):
                return None
            return memory if where.modes is None or memory.mode in where.modes else None

        capsules = (capsule_of(scope, category, where, read) for scope, category in matching)
        shown = islice((capsule for capsule in capsules if capsule is not None), MAX_SUMMARIES)
        return {capsule.memory_id: capsule for capsule in shown}


def query_coverage(query: str, words: LexicalIndex, boundary: str) -> TermCoverage:
    """Return the terms with their idf (`agents.rules.index.vocabulary.idf`)."""
    terms, memory_columns = content_terms(query), words.memory_columns(boundary)
    postings = words.postings(boundary, terms)
    weights = [idf(len(postings_of_term.numbers), memory_columns.documents) for postings_of_term in postings]
    return TermCoverage(terms, weights, memory_columns.languages())


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


class ContextReadings(NamedTuple):
    """Data read before the snapshot: texts of rules, matching categories."""

    texts: RuleTexts
    categories: Sequence[ScopedCategory]


def scope_filter(request: AssembleRequest) -> MemoryFilter:
    """Return the filter for the scope of a request, over all modes, without its `filters`."""
    as_of_ms = None if request.as_of is None else milliseconds_of(request.as_of)
    return MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields(), as_of_ms=as_of_ms)


class SnapshotReader:
    """Requests in, their candidates out."""

    def __init__(
        self,
        words: LexicalIndex,
        memories: Memories,
        taxonomy: ModeTaxonomy,
        capsules: CategorySummaries | None = None,
        *,
        asks_model: bool = False,
    ) -> None:
        """Without `capsules` a context has no category summaries. `asks_model`: a language model may find rules."""
        self._words = words
        self._memories = memories
        self._taxonomy = taxonomy
        self._capsules = capsules
        self._revised_rules = RevisedRules(words, memories, asks_model=asks_model)

    async def prepare(self, request: AssembleRequest, modes: Sequence[str], today: date) -> ContextReadings:
        """Do the slow reads, with pauses."""
        scope, pauses, texts = scope_filter(request), Pauses(), RuleTexts(self._memories, today)
        memory_columns = self._words.memory_columns(scope.boundary)
        visible = VisibleSet.of(memory_columns, scope, request.conversation_id)
        await self._revised_rules.read(visible, memory_columns, scope, texts, pauses)
        where = replace(scope, modes=tuple(modes))
        categories = [] if self._capsules is None else await self._capsules.matching(request.query, where, pauses)
        return ContextReadings(texts, categories)

    def read(
        self,
        request: AssembleRequest,
        interaction: InteractionMode,
        modes: Sequence[str],
        hits: Mapping[str, float],
        readings: ContextReadings,
    ) -> ContextSnapshot:
        """Return the candidates; `modes` are those that the context shows, `hits` the evidence's scores, best first.

        `readings` were prepared for the same request and hits.
        """
        scope = scope_filter(request)
        of_modes = replace(scope, modes=tuple(modes))
        # Safety requirements and pins are those of the whole scope.
        where = replace(of_modes, filters=request.filters)
        memory_columns = self._words.memory_columns(scope.boundary)
        in_modes = memory_columns.admitted(of_modes)
        visible_set = self._revised_rules.apply(
            VisibleSet.of(memory_columns, scope, request.conversation_id).restricted(
                in_modes, in_modes if request.filters is None else memory_columns.admitted(where)
            ),
            memory_columns,
            scope,
            readings.texts,
        )
        count = estimate_turns(request.budget_tokens, request.format)
        turns = last_turns(memory_columns, where, request.conversation_id, count)
        age_of = visible_set.age_of(memory_columns)
        items = self._words.memory_columns(item_index_name(where.boundary))
        indexes = ((memory_columns, in_modes), (items, items.admitted(of_modes)))
        pins = [
            pin
            for pin in dict.fromkeys(request.pins)
            if any(pin in index.number_of and mask[index.number_of[pin]] for index, mask in indexes)
        ]
        pinned = frozenset(pins)
        return ContextSnapshot(
            candidates=collect_section_candidates(
                self._taxonomy, interaction, visible_set, memory_columns, hits, turns, pins, self._memories.get
            ),
            pins=sorted(pins, key=age_of, reverse=True),
            unknown=[pin for pin in dict.fromkeys(request.pins) if pin not in pinned],
            turns=turns[::-1],
            summaries={}
            if self._capsules is None
            else self._capsules.capsules(readings.categories, where, for_model=request.for_model),
            age_of=age_of,
        )
