"""A request for a context in, a prompt of three messages that fits its token budget out, and an account of it.

First comes what must not be dropped, by priority; then what was pinned; then each section as far as its budget goes:
rules, state, decisions, distilled memories, the last turns, what was found for the query, and summaries of categories
that it is about, where no turn says the same. Room that is left over goes to what was found and to older turns. What
the interaction mode has no use for is left out. The whole prompt, counted as it is sent, never has more tokens than
were asked for.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from agents.context.category_summaries import CategorySummaries
from agents.context.packing import PackedPrompt, PromptPacker
from agents.context.revised_rules import RevisedRules
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.ports.tokenizer import TokenCounter
from agents.rules.context.budgets import allocate_remaining_tokens, scale_budgets
from agents.rules.context.packing import ContextPacker
from agents.rules.context.retention import RETENTION_POLICIES
from agents.rules.context.section_candidates import SectionCandidates, collect_section_candidates
from agents.rules.context.sticky import breach_of
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.window import estimate_turns, last_turns
from schemas.assemble import AssembleRequest, AssembleResult
from schemas.failures import ModelMissing, Unavailable
from schemas.interaction import Interaction, InteractionMode
from schemas.memories import Memory, item_index_name
from schemas.retrieval import RetrieveRequest, RetrieveResult
from schemas.vectors import MemoryFilter

Warnings = list[tuple[str, str]]
"""Codes and messages."""

Judge = Callable[[AssembleRequest, Sequence[Memory]], Awaitable[Interaction]]
"""Tells what a request is for, from its query and the conversation's last turns, newest last."""

Retriever = Callable[[RetrieveRequest], Awaitable[tuple[RetrieveResult, Warnings]]]
"""Finds what answers a query, best first."""

MAX_JUDGED_TURNS = 12
"""Last turns that the judge sees: the user's last three are among them, unless tools have said much in between."""

MAX_NAMED_PINS = 10
"""Unknown pins that a warning names."""

MAX_PIN_CHARS = 80
"""Characters of a pin in a warning; an id has 36."""

MIN_HITS, MAX_HITS = 20, 100
"""Hits that are asked for: as many as the budget may hold, within what one request may ask (CONTRACT §5)."""

UNKNOWN_INTERACTION = Interaction(mode="GENERAL", confidence=0.0)
"""What a request is for where nobody can tell: the conservative answer of seed 002."""


class ContextSnapshot(NamedTuple):
    """What a context is made of, read at one moment.

    `pins` and `turns` have the newest first; `summaries` are of categories, by ids of their own; `age_of` orders ids.
    """

    offers: SectionCandidates
    pins: list[str]
    unknown: list[str]
    turns: list[str]
    summaries: dict[str, Memory]
    age_of: Callable[[str], int]


class Assemble:
    """Answers assemble requests. Writes nothing; what it reads is reached through ports."""

    def __init__(
        self,
        words: LexicalIndex,
        memories: Memories,
        tokens: TokenCounter,
        interaction: Judge,
        search: Retriever,
        capsules: CategorySummaries | None = None,
        *,
        asks_model: bool = False,
    ) -> None:
        """Take the ports; Without `capsules` there are no categories.

        `asks_model`: whether a language model reads every turn, and may find what must not be dropped.
        """
        self._words = words
        self._memories = memories
        self._tokens = tokens
        self._interaction = interaction
        self._search = search
        self._capsules = capsules
        self._revised = RevisedRules(words, memories, asks_model=asks_model)

    async def answer(self, request: AssembleRequest) -> tuple[AssembleResult, Warnings]:
        """Assemble a context.

        Raises Rejected, `unknown_mode`, or `invalid_value` where the system prompt leaves no room; Unavailable while
        there is no tokenizer.
        """
        summaries: dict[str, Memory] = {}
        packing = await PromptPacker.begin(
            request, lambda one: summaries.get(one) or self._memories.get(one), self._tokens
        )
        found, warnings = await self._search(_search_of(request))
        interaction, unsure = await self._judged(request)
        # Others may have written meanwhile: from here on all is read anew, and what is offered is of one moment.
        moment = self._moment(request, interaction.mode, [hit.memory_id for hit in found.hits])
        summaries |= moment.summaries
        await _fill(packing, interaction.mode, moment)
        result = _result(packing.filling, await packing.prompt(), interaction, moment, request.budget_tokens)
        return result, [*warnings, *unsure, *_unknown_pins(moment.unknown)]

    async def _judged(self, request: AssembleRequest) -> tuple[Interaction, Warnings]:
        if request.interaction_mode is not None:
            return Interaction(mode=request.interaction_mode, confidence=1.0), []
        roster = self._words.memory_columns(request.scope.boundary)
        turns = (
            roster.latest(_where(request), request.conversation_id, MAX_JUDGED_TURNS) if request.conversation_id else []
        )
        try:
            return await self._interaction(request, self._records(turns)), []
        except (Unavailable, ModelMissing) as problem:
            return UNKNOWN_INTERACTION, [
                ("degraded", f"what the request is for can't be told, it is taken as GENERAL: {problem}")
            ]

    def _moment(self, request: AssembleRequest, mode: InteractionMode, hits: Sequence[str]) -> ContextSnapshot:
        roster, where = self._words.memory_columns(request.scope.boundary), _where(request)
        sight = self._revised.applied(VisibleSet.of(roster, where, request.conversation_id), roster, where)
        said_as = {
            memory.memory_id: memory.reading.interaction.mode
            for memory in self._records(hits)
            if memory.reading.interaction is not None
        }
        turns = last_turns(roster, where, request.conversation_id, request.budget_tokens)
        visible = self._visible(request, roster, sight.admitted)
        return ContextSnapshot(
            offers=collect_section_candidates(mode, sight, roster, hits, said_as),
            pins=sorted(visible, key=sight.age_of(roster), reverse=True),
            unknown=[pin for pin in dict.fromkeys(request.pins) if pin not in visible],
            turns=turns[::-1],
            summaries={} if self._capsules is None else self._capsules.about(request.query, where),
            age_of=sight.age_of(roster),
        )

    def _visible(self, request: AssembleRequest, turns: MemoryColumns, admitted: Mask) -> list[str]:
        """The pins that the request may see, each once: turns, what was distilled, and items."""
        items, where = self._words.memory_columns(item_index_name(request.scope.boundary)), _where(request)
        shelves = ((turns, admitted), (items, items.admitted(where)))
        return [
            pin
            for pin in dict.fromkeys(request.pins)
            if any(pin in roster.number_of and mask[roster.number_of[pin]] for roster, mask in shelves)
        ]

    def _records(self, memory_ids: Iterable[str]) -> list[Memory]:
        """The records that are there, in the order of their ids."""
        found = (self._memories.get(memory_id) for memory_id in memory_ids)
        return [memory for memory in found if memory is not None]


async def _fill(packing: PromptPacker, mode: InteractionMode, moment: ContextSnapshot) -> None:
    """Offer everything in the order of its importance."""
    filling, offers = packing.filling, moment.offers
    total = filling.left
    await packing.keep_sticky(offers.sticky)
    await packing.offer("retrieved_evidence", moment.pins, filling.left)
    room = allocate_remaining_tokens(scale_budgets(mode, total), filling.tokens(), filling.left)
    await packing.offer("rules", offers.rules, room["rules"])
    await packing.offer("task_state", offers.task_state, room["task_state"])
    await packing.offer("relevant_decisions", offers.decisions, room["relevant_decisions"])
    await packing.offer("capsules", offers.capsules, room["capsules"])
    await packing.offer("recent_window", moment.turns, room["recent_window"], unbroken=True)
    await packing.offer("retrieved_evidence", offers.evidence, room["retrieved_evidence"])
    await packing.offer("capsules", moment.summaries, room["capsules"] - filling.tokens()["capsules"])
    for section in RETENTION_POLICIES[mode].overflow_sections:
        window = section == "recent_window"
        await packing.offer(section, moment.turns if window else offers.evidence, filling.left, unbroken=window)
    filling.drop(offers.excluded)


def _result(
    filling: ContextPacker, prompt: PackedPrompt, interaction: Interaction, moment: ContextSnapshot, budget_tokens: int
) -> AssembleResult:
    return AssembleResult(
        messages=prompt.messages,
        sections=filling.sections(),
        interaction_mode=interaction.mode,
        interaction_confidence=interaction.confidence,
        budget=scale_budgets(interaction.mode, budget_tokens),
        tokens={"total": prompt.tokens, **filling.tokens()},
        dropped=sorted(filling.dropped, key=moment.age_of),
        sticky=[memory_id for _, memory_id in moment.offers.sticky if filling.has(memory_id)],
        breaches=[breach_of(*one) for one in moment.offers.sticky if filling.is_missing(one[1])],
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
    """One warning that names the first pins that were ignored."""
    if not unknown:
        return []
    named = ", ".join(pin[:MAX_PIN_CHARS] for pin in unknown[:MAX_NAMED_PINS])
    return [("unknown_pin", f"not in this scope: {named}" + (", \u2026" if len(unknown) > MAX_NAMED_PINS else ""))]
