"""Assemble a context: a prompt within a token budget, and an account of its content.

Order: sticky memories by priority; pins; then each section within its budget: rules, state, decisions, distilled
memories, the last turns, hits of the query, and summaries of matching categories that no turn repeats. The room that
sections leave goes to the whole text of the first hits, to hits by rank, then to older turns. The whole prompt, counted
as it is sent, never exceeds the budget without its reserve.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import NamedTuple

from modestream_client.contexts import AssembleResult, ContextDiagnostics
from modestream_client.hits import Hit
from pydantic import Field

from agents.context.packing import PromptPacker, PromptSource
from agents.context.snapshot import ContextSnapshot, SnapshotReader, query_coverage, scope_filter
from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex
from agents.ports.models import TokenCounter
from agents.ports.pipelines import ActivePipelines, State
from agents.ports.stores import Intentions, Memories
from agents.rules.answer.hits import TermCoverage
from agents.rules.context.excerpts import passages_to_show
from agents.rules.context.packing import ContextPacker, estimate_turns
from agents.rules.context.section_candidates import allocate_remaining_tokens, scale_budgets
from agents.rules.context.sticky import breach_of
from agents.rules.context.visible_memories import is_contradicted
from agents.rules.cues.mode_taxonomy import ModeTable, ModeTaxonomy
from agents.rules.interaction.stability import (
    StabilitySource,
    assume_stable,
    describe_fallback,
    given_interaction,
    interaction_by_intent,
)
from agents.rules.memory.resources import is_part, with_quotes
from agents.rules.prompts.prompting import CHARS_PER_TOKEN
from agents.rules.text.passages import Span
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import (
    DEFAULT_MIN_BEST_SCORE,
    DEFAULT_MIN_SCORE,
    MAX_BUDGET_TOKENS,
    AssembleRequest,
    text_digest,
)
from schemas.messages.retrieval import ContextSearch, RetrieveRequest, RetrieveResult
from schemas.models.vectors import MemoryFilter
from schemas.moments import milliseconds_of
from schemas.scopes import scope_of_user
from schemas.state.intention import SETTABLE_PARTS
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, item_index_name

BUILD_CONTEXT = "retrieve.build_context"

Warnings = list[tuple[str, str]]
"""Codes and messages."""

Judge = Callable[[AssembleRequest, Sequence[Memory]], Awaitable[Interaction]]
"""Classifies a request by its query and the conversation's last turns, newest last."""

Retriever = Callable[[RetrieveRequest], Awaitable[tuple[RetrieveResult, Warnings]]]
"""Retrieves the hits of a query, best first."""

MAX_JUDGED_TURNS = 12
"""Maximum turns given to the classifier: enough for the user's last three, unless many tool turns lie between them."""

MAX_NAMED_PINS = 10
"""Maximum unknown pins named in a warning."""

MAX_PIN_CHARS = 80
"""Characters of a pin in a warning; an id has 36."""

MAX_WHOLE_FIRST = 3
"""First hits whose replies are shown whole before hits of lower worth get room: a passage often misses the next step of
a list, or the reason that follows. Of more, the room for other evidence suffers."""

INTENTION_BUDGET_DIVISOR = 8
"""Maximum share of a budget for entries set for the whole user."""

MIN_HITS = 20
"""Requested hits, however small the budget: the sections choose among them too."""


class ContextLimits(NamedTuple):
    """A deployment's floors of evidence (scores, 0..1) and largest budget (tokens)."""

    min_score: float = DEFAULT_MIN_SCORE
    min_best_score: float = DEFAULT_MIN_BEST_SCORE
    max_budget_tokens: int = MAX_BUDGET_TOKENS


class ShownReference(NamedTuple):
    """A memory in a context. `score` is that of its hit, `offset` that of its record if it is a turn."""

    memory_id: str
    version: int
    section: str
    score: float | None
    tokens: int
    offset: int | None


class AssembledContext(AssembleResult):
    """A context, and the data that only the log keeps of it; a reply has the context alone."""

    shown: tuple[ShownReference, ...] = Field(default=(), exclude=True)
    modes: tuple[str, ...] = Field(default=(), exclude=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assemble:
    """Assemble requests in, contexts out. Writes nothing.

    `stability` is the state that `interaction` took into account; `intentions` are the entries set for the whole user.
    """

    words: LexicalIndex
    memories: Memories
    tokens: TokenCounter
    interaction: Judge
    search: Retriever
    snapshots: SnapshotReader
    clock: Clock
    limits: ContextLimits
    taxonomy: ModeTaxonomy
    pipelines: ActivePipelines
    stability: StabilitySource = assume_stable
    intentions: Intentions | None = None

    async def answer(self, request: AssembleRequest) -> tuple[AssembledContext, Warnings]:
        """Assemble a context.

        Raises Rejected `unknown_mode`, or `invalid_value` if the request's own texts exceed the budget, or the budget
        its limits; Unavailable while the tokenizer is not loaded.
        """
        summaries: dict[str, Memory] = {}
        passages: dict[str, list[Span]] = {}
        quoted: dict[str, list[str]] = {}
        source = self._source(request, summaries, passages, quoted)
        packer = await PromptPacker.begin(source, self.tokens, self.limits.max_budget_tokens)
        search = ContextSearch(
            scope=request.scope,
            query=request.query,
            mode=request.mode,
            conversation_id=request.conversation_id,
            filters=request.filters,
            as_of=request.as_of,
        )
        # A context may take more hits than one request may ask for.
        top_k = max(MIN_HITS, estimate_turns(request.budget_tokens, request.format))
        retrieved, warnings = await self.search(search.model_copy(update={"top_k": top_k}))
        passages |= passages_to_show(retrieved.hits)
        quoted |= {
            hit.memory_id: [item.memory_id for item in hit.items if item.type == "document"]
            for hit in retrieved.hits
            if hit.items
        }
        state: State = {"query": request.query, "hits": retrieved.hits, "modes": retrieved.modes}
        build = partial(self._build, request, packer, source.now, summaries)
        await self.pipelines.run({BUILD_CONTEXT: build}, state)
        return state["context"], [*warnings, *state["warned"]]

    async def _build(
        self, request: AssembleRequest, packer: PromptPacker, now: datetime, summaries: dict[str, Memory], state: State
    ) -> State:
        interaction, judge_warnings = await self._judge(request)
        # Records may have changed during the search: the candidates are read again, as a consistent snapshot.
        evidence, mode, today = self._evidence(request, state["hits"]), interaction.mode, now.date()
        readings = await self.snapshots.prepare(request, state["modes"], today)
        snapshot = self.snapshots.read(request, mode, state["modes"], evidence, readings)
        summaries |= snapshot.summaries
        table = self.taxonomy.modes[mode]
        await _fill(packer, table, snapshot)
        prompt, content = await packer.prompt(), packer.content
        # A UUIDv7: its time says where in a log to look for it. The variant, and the bits below it, are a UUIDv4's.
        random = uuid.uuid4().int
        context_id = milliseconds_of(now) << 80 | 7 << 76 | (random >> 64 & 0xFFF) << 64 | random & ((1 << 64) - 1)
        result = AssembledContext(
            messages=prompt.messages,
            references=prompt.references,
            sections=content.sections(),
            interaction_mode=interaction.mode,
            interaction_confidence=interaction.confidence,
            budget=scale_budgets(table, packer.budget),
            tokens={"total": prompt.tokens, **content.tokens()},
            dropped=sorted(content.dropped, key=snapshot.age_of),
            sticky=[memory_id for _, memory_id in packer.sticky if content.has(memory_id)],
            breaches=[breach_of(*sticky) for sticky in packer.sticky if content.is_missing(sticky[1])],
            context_id=str(uuid.UUID(int=context_id)),
            shown=_shown(prompt.references, content, evidence),
            modes=tuple(state["modes"]),
            diagnostics=ContextDiagnostics(
                kept_against_mode=list(filter(content.has, snapshot.candidates.kept_against)),
                taxonomy_version=self.taxonomy.version,
            ),
        )
        if prompt.question is not None:
            result.tokens["question"] = prompt.question
        return {"context": result, "warned": [*judge_warnings, *_unknown_pins(snapshot.unknown)]}

    def _source(
        self,
        request: AssembleRequest,
        summaries: dict[str, Memory],
        passages: Mapping[str, Sequence[Span]],
        quoted: Mapping[str, Sequence[str]],
    ) -> PromptSource:
        """Return the source of the prompt; `quoted` are the ids of parts of files by those of their turns."""

        @cache
        def terms() -> TermCoverage:
            """Return the query's terms; most contexts cut no text and never need them."""
            return query_coverage(request.query, self.words, request.scope.boundary)

        already_shown = frozenset(request.already_shown)

        def record(memory_id: str) -> Memory | None:
            memory = summaries.get(memory_id) or self.memories.get(memory_id)
            if memory is None or (request.for_model and memory.visibility.private):
                return None
            if already_shown and text_digest(memory.text) in already_shown:
                return None
            if memory_id not in quoted:
                return memory
            parts = map(self.memories.get, quoted[memory_id])
            return with_quotes(memory, [part for part in parts if part is not None and is_part(part)])

        return PromptSource(
            request,
            record=record,
            coverage=lambda passage: terms().share(terms().terms_in(passage)),
            now=self.clock.now(),
            passages=passages,
            changed_at=ChangedValues(self.words, self.memories, scope_filter(request)).changed_at,
            intention=self._intention_of_user(request),
        )

    def _intention_of_user(self, request: AssembleRequest) -> Mapping[str, Sequence[str]]:
        """Return the user-wide entries, by list, that fit their share of the budget."""
        # It rests on no memory, so that it matches no filter.
        if self.intentions is None or request.filters is not None:
            return {}
        scope = scope_of_user(request.scope.boundary, request.scope.fields(), request.scope.boundary_fields)
        intention = self.intentions.get(scope)
        room = request.budget_tokens // INTENTION_BUDGET_DIVISOR * CHARS_PER_TOKEN
        shown: dict[str, list[str]] = {}
        for part in SETTABLE_PARTS:
            for entry in intention.open_entries(part):
                if request.as_of is not None and entry.at > request.as_of:
                    continue
                room -= len(entry.text.encode())
                if room >= 0:
                    shown.setdefault(part, []).append(entry.text)
        return shown

    def _evidence(self, request: AssembleRequest, hits: Sequence[Hit]) -> dict[str, float]:
        """Return the scores of the hits that score high enough by id, best first."""
        floor = request.min_score
        if floor is None:
            floor = self.limits.min_score
            if not hits or hits[0].score < self.limits.min_best_score:
                return {}
        return {hit.memory_id: hit.score for hit in hits if hit.score >= floor}

    async def _judge(self, request: AssembleRequest) -> tuple[Interaction, Warnings]:
        if (interaction := given_interaction(request.interaction_mode, request.intent, self.taxonomy)) is not None:
            return interaction, []
        memory_columns = self.words.memory_columns(request.scope.boundary)
        turns = (
            memory_columns.latest(scope_filter(request), request.conversation_id, MAX_JUDGED_TURNS)
            if request.conversation_id
            else []
        )
        stability = self.stability(request.scope.boundary)
        fallback = [("interaction_fallback", describe_fallback(stability))] if stability.is_fallback else []
        judged = [memory for memory_id in turns if (memory := self.memories.get(memory_id)) is not None]
        try:
            return await self.interaction(request, judged), fallback
        except (Unavailable, ModelMissing) as problem:
            message = f"the classifier is unavailable, the interaction mode is by the query's intent: {problem}"
            return interaction_by_intent(request.query, self.taxonomy), [("degraded", message), *fallback]


def _shown(
    references: Sequence[str], content: ContextPacker, scores: Mapping[str, float]
) -> tuple[ShownReference, ...]:
    section_of = {memory_id: section for section, ids in content.sections().items() for memory_id in ids}
    entries = ((memory_id, content.kept(memory_id)) for memory_id in references)
    return tuple(
        ShownReference(
            memory_id,
            entry.memory.version,
            section_of[memory_id],
            scores.get(memory_id),
            entry.tokens,
            entry.memory.latest if entry.memory.origin == "said" else None,
        )
        for memory_id, entry in entries
        if entry is not None
    )


async def _fill(packer: PromptPacker, table: ModeTable, snapshot: ContextSnapshot) -> None:
    """Offer all candidates in order of importance."""
    content, candidates = packer.content, snapshot.candidates
    total = content.left
    demoted = await packer.keep_sticky(candidates.sticky, candidates.evidence, snapshot.pins)
    packer.leave_out(candidates.drops)
    await packer.offer("retrieved_evidence", snapshot.pins, content.left)
    room = allocate_remaining_tokens(scale_budgets(table, total), content.tokens(), content.left)
    await packer.offer("rules", [*candidates.rules, *demoted], room["rules"])
    await packer.offer("task_state", candidates.task_state, room["task_state"])
    await packer.offer("relevant_decisions", candidates.decisions, room["relevant_decisions"])
    await packer.offer("capsules", candidates.capsules, room["capsules"])
    await packer.offer("recent_window", snapshot.turns, room["recent_window"], contiguous=True)
    await packer.offer("retrieved_evidence", candidates.evidence, room["retrieved_evidence"], by_passages=True)
    await packer.offer("capsules", snapshot.summaries, room["capsules"] - content.tokens()["capsules"])
    first = [memory_id for memory_id in candidates.evidence if memory_id not in packer.left_out][:MAX_WHOLE_FIRST]
    await packer.show_whole(first, except_large=True)
    await packer.offer("retrieved_evidence", candidates.evidence, content.left, by_passages=True)
    if table.older_turns:
        await packer.offer("recent_window", snapshot.turns, content.left, contiguous=True)
    await packer.offer("rules", demoted, content.left)
    await packer.show_whole(candidates.evidence)


def _unknown_pins(unknown: Sequence[str]) -> Warnings:
    if not unknown:
        return []
    named = ", ".join(pin[:MAX_PIN_CHARS] for pin in unknown[:MAX_NAMED_PINS])
    more = ", \u2026" if len(unknown) > MAX_NAMED_PINS else ""
    return [("unknown_pin", f"not in this scope and its mode: {named}{more}")]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChangedValues:
    """Turns in, the times of the statements that replaced theirs out."""

    words: LexicalIndex
    memories: Memories
    where: MemoryFilter

    def changed_at(self, turn: Memory) -> datetime | None:
        """Return the time of the first statement that replaced one of this turn; None if all of it still holds.

        A statement that is private, or that no search finds, says nothing about a turn that is neither.
        """
        items, times = self.words.memory_columns(item_index_name(turn.boundary)), []
        superseded = items.superseded(self.where)
        for item_id in turn.items:
            number = items.number_of.get(item_id)
            # Most items are current: their records need not be read.
            if number is None or not superseded[number]:
                continue
            item = self.memories.get(item_id)
            if item is None or item.item is None or item.superseded_by is None or not is_contradicted(item):
                continue
            successor = self.memories.get(item.superseded_by)
            if successor is not None and (turn.visibility.private or not successor.visibility.private):
                times.append(item.item.valid_until)
        return min((time for time in times if time is not None), default=None)
