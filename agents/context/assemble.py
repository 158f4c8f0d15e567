"""Assemble a context: a prompt of three messages within a token budget, and an account of its content.

Order: sticky memories by priority; pins; then each section within its budget: rules, state, decisions, distilled
memories, the last turns, hits of the query, and summaries of matching categories that no turn repeats. The remaining
tokens go to hits and older turns. Sections that the interaction mode does not use are left out. The whole prompt,
counted as it is sent, never exceeds the budget.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from agents.context.category_summaries import CategorySummaries
from agents.context.packing import PackedPrompt, PromptPacker
from agents.context.revised_rules import RevisedRules
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.ports.tokenizer import TokenCounter
from agents.rules.context.packing import ContextPacker
from agents.rules.context.section_candidates import (
    RETENTION_POLICIES,
    SectionCandidates,
    allocate_remaining_tokens,
    collect_section_candidates,
    scale_budgets,
)
from agents.rules.context.sticky import breach_of
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.window import estimate_turns, last_turns
from agents.rules.interaction.stability import StabilitySource, assume_stable, describe_fallback
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import AssembleRequest, AssembleResult
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.models.vectors import MemoryFilter
from schemas.state.interaction import Interaction, InteractionMode
from schemas.state.memories import Memory, item_index_name

Warnings = list[tuple[str, str]]
"""Codes and messages."""

Judge = Callable[[AssembleRequest, Sequence[Memory]], Awaitable[Interaction]]
"""Classifies a request by its query and the conversation's last turns, newest last."""

Retriever = Callable[[RetrieveRequest], Awaitable[tuple[RetrieveResult, Warnings]]]
"""Retrieves the hits of a query, best first."""

MAX_JUDGED_TURNS = 12
"""Last turns for the classification: they include the user's last three, unless many tool turns lie in between."""

MAX_NAMED_PINS = 10
"""Unknown pins that a warning names."""

MAX_PIN_CHARS = 80
"""Characters of a pin in a warning; an id has 36."""

MIN_HITS, MAX_HITS = 20, 100
"""Requested hits: as many as the budget may hold, within the limit of one request (`docs/contract.md`)."""

UNKNOWN_INTERACTION = Interaction(mode="GENERAL", confidence=0.0)
"""The interaction of a request that can't be classified: the conservative mode."""


class ContextSnapshot(NamedTuple):
    """The candidates of a context, read at one moment.

    `pins` and `turns` have the newest first; `summaries` are of categories, by their own ids; `age_of` orders ids.
    """

    candidates: SectionCandidates
    pins: list[str]
    unknown: list[str]
    turns: list[str]
    summaries: dict[str, Memory]
    age_of: Callable[[str], int]


class Assemble:
    """Assemble requests in, contexts out. Writes nothing."""

    def __init__(
        self,
        words: LexicalIndex,
        memories: Memories,
        tokens: TokenCounter,
        interaction: Judge,
        search: Retriever,
        capsules: CategorySummaries | None = None,
        *,
        stability: StabilitySource = assume_stable,
        asks_model: bool = False,
    ) -> None:
        """Without `capsules` a context has no category summaries. `stability` is the one that `interaction` respects.

        `asks_model`: a language model reads every turn and may find sticky items.
        """
        self._words = words
        self._memories = memories
        self._tokens = tokens
        self._interaction = interaction
        self._search = search
        self._capsules = capsules
        self._stability = stability
        self._revised_rules = RevisedRules(words, memories, asks_model=asks_model)

    async def answer(self, request: AssembleRequest) -> tuple[AssembleResult, Warnings]:
        """Assemble a context.

        Raises Rejected `unknown_mode`, or `invalid_value` if the system prompt exceeds the budget; Unavailable while
        the tokenizer is not loaded.
        """
        summaries: dict[str, Memory] = {}
        packer = await PromptPacker.begin(
            request, lambda one: summaries.get(one) or self._memories.get(one), self._tokens
        )
        found, warnings = await self._search(_search_of(request))
        interaction, judge_warnings = await self._judge(request)
        # Records may have changed during the search: the candidates are read again, as a consistent snapshot.
        snapshot = self._snapshot(request, interaction.mode, [hit.memory_id for hit in found.hits])
        summaries |= snapshot.summaries
        await _fill(packer, interaction.mode, snapshot)
        result = _result(packer.content, await packer.prompt(), interaction, snapshot, request.budget_tokens)
        return result, [*warnings, *judge_warnings, *self._fallback(request), *_unknown_pins(snapshot.unknown)]

    async def _judge(self, request: AssembleRequest) -> tuple[Interaction, Warnings]:
        if request.interaction_mode is not None:
            return Interaction(mode=request.interaction_mode, confidence=1.0), []
        memory_columns = self._words.memory_columns(request.scope.boundary)
        turns = (
            memory_columns.latest(_where(request), request.conversation_id, MAX_JUDGED_TURNS)
            if request.conversation_id
            else []
        )
        try:
            return await self._interaction(request, self._records(turns)), []
        except (Unavailable, ModelMissing) as problem:
            message = f"the request can't be classified, its interaction mode is taken as GENERAL: {problem}"
            return UNKNOWN_INTERACTION, [("degraded", message)]

    def _fallback(self, request: AssembleRequest) -> Warnings:
        """Return a warning if the request was classified while only confident classifications are used."""
        if request.interaction_mode is not None or not (stability := self._stability()).is_fallback:
            return []
        return [("interaction_fallback", describe_fallback(stability))]

    def _snapshot(self, request: AssembleRequest, mode: InteractionMode, hits: Sequence[str]) -> ContextSnapshot:
        memory_columns, where = self._words.memory_columns(request.scope.boundary), _where(request)
        visible_set = self._revised_rules.apply(
            VisibleSet.of(memory_columns, where, request.conversation_id), memory_columns, where
        )
        interaction_modes = {
            memory.memory_id: memory.reading.interaction.mode
            for memory in self._records(hits)
            if memory.reading.interaction is not None
        }
        turns = last_turns(memory_columns, where, request.conversation_id, request.budget_tokens)
        visible = self._visible(request, memory_columns, visible_set.admitted)
        return ContextSnapshot(
            candidates=collect_section_candidates(mode, visible_set, memory_columns, hits, interaction_modes),
            pins=sorted(visible, key=visible_set.age_of(memory_columns), reverse=True),
            unknown=[pin for pin in dict.fromkeys(request.pins) if pin not in visible],
            turns=turns[::-1],
            summaries={} if self._capsules is None else self._capsules.about(request.query, where),
            age_of=visible_set.age_of(memory_columns),
        )

    def _visible(self, request: AssembleRequest, turns: MemoryColumns, admitted: Mask) -> list[str]:
        """Return the pins that the request may see, without duplicates: turns, distilled memories and items."""
        items, where = self._words.memory_columns(item_index_name(request.scope.boundary)), _where(request)
        indexes = ((turns, admitted), (items, items.admitted(where)))
        return [
            pin
            for pin in dict.fromkeys(request.pins)
            if any(pin in index.number_of and mask[index.number_of[pin]] for index, mask in indexes)
        ]

    def _records(self, memory_ids: Iterable[str]) -> list[Memory]:
        """Return the existing records, in the order of the ids."""
        found = (self._memories.get(memory_id) for memory_id in memory_ids)
        return [memory for memory in found if memory is not None]


async def _fill(packer: PromptPacker, mode: InteractionMode, snapshot: ContextSnapshot) -> None:
    """Offer all candidates in order of importance."""
    content, candidates = packer.content, snapshot.candidates
    total = content.left
    await packer.keep_sticky(candidates.sticky)
    await packer.offer("retrieved_evidence", snapshot.pins, content.left)
    room = allocate_remaining_tokens(scale_budgets(mode, total), content.tokens(), content.left)
    await packer.offer("rules", candidates.rules, room["rules"])
    await packer.offer("task_state", candidates.task_state, room["task_state"])
    await packer.offer("relevant_decisions", candidates.decisions, room["relevant_decisions"])
    await packer.offer("capsules", candidates.capsules, room["capsules"])
    await packer.offer("recent_window", snapshot.turns, room["recent_window"], contiguous=True)
    await packer.offer("retrieved_evidence", candidates.evidence, room["retrieved_evidence"])
    await packer.offer("capsules", snapshot.summaries, room["capsules"] - content.tokens()["capsules"])
    for section in RETENTION_POLICIES[mode].overflow_sections:
        window = section == "recent_window"
        await packer.offer(section, snapshot.turns if window else candidates.evidence, content.left, contiguous=window)
    content.drop(candidates.excluded)


def _result(
    content: ContextPacker,
    prompt: PackedPrompt,
    interaction: Interaction,
    snapshot: ContextSnapshot,
    budget_tokens: int,
) -> AssembleResult:
    return AssembleResult(
        messages=prompt.messages,
        sections=content.sections(),
        interaction_mode=interaction.mode,
        interaction_confidence=interaction.confidence,
        budget=scale_budgets(interaction.mode, budget_tokens),
        tokens={"total": prompt.tokens, **content.tokens()},
        dropped=sorted(content.dropped, key=snapshot.age_of),
        sticky=[memory_id for _, memory_id in snapshot.candidates.sticky if content.has(memory_id)],
        breaches=[breach_of(*one) for one in snapshot.candidates.sticky if content.is_missing(one[1])],
    )


def _where(request: AssembleRequest) -> MemoryFilter:
    return MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())


def _search_of(request: AssembleRequest) -> RetrieveRequest:
    return RetrieveRequest(
        scope=request.scope,
        query=request.query,
        mode=request.mode,
        conversation_id=request.conversation_id,
        top_k=min(MAX_HITS, max(MIN_HITS, estimate_turns(request.budget_tokens))),
    )


def _unknown_pins(unknown: Sequence[str]) -> Warnings:
    """Return a warning that names the first ignored pins."""
    if not unknown:
        return []
    named = ", ".join(pin[:MAX_PIN_CHARS] for pin in unknown[:MAX_NAMED_PINS])
    return [("unknown_pin", f"not in this scope: {named}" + (", \u2026" if len(unknown) > MAX_NAMED_PINS else ""))]
