"""Understand turns: by rules and classifier at once, by a language model in the background.

Enters: memories. Leaves: interaction modes, and `Understood` events of language models. Writes nothing. No turn waits
for a model: without an answer it stays `pending` on the record and is asked again. Stored text is data in the prompt,
never an instruction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex
from agents.ports.models import LanguageModel
from agents.ports.pipelines import ActivePipelines
from agents.ports.stores import Categories, Memories, Modes
from agents.rules.categories.assignment import keep_known_categories
from agents.rules.index.vocabulary import bm25
from agents.rules.interaction.stability import apply_threshold
from agents.rules.items.analysis import file_parts
from agents.rules.items.claims import is_replaceable, with_known_items
from agents.rules.items.facts import FIRST_PERSON
from agents.rules.memory.resources import cited_place
from agents.rules.memory.understanding import UNANSWERABLE_PROFILE, current_text_hash, needs_understanding
from agents.rules.memory.visibility import may_show_model
from agents.rules.prompts.prompting import (
    CHARS_PER_TOKEN,
    MAX_EARLIER_CHARS,
    RecentTurn,
    Template,
    build_understanding_prompt,
)
from agents.rules.text.passages import parse_sentence
from agents.rules.text.tokenizer import content_terms
from agents.understanding.interaction_reader import InteractionReader
from schemas.failures import ModelMissing, Unavailable
from schemas.internal.events import Refresh, Understood
from schemas.models.language import Prompt, Unanswerable
from schemas.models.vectors import MemoryFilter
from schemas.scopes import PROJECT_FIELD
from schemas.state.categories import Taxonomy
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, item_index_name
from schemas.state.understanding import Understanding

UNDERSTAND = "memorize.understand"

UNDERSTAND_STEP, UNDERSTAND_ROLE = "understand.turn", "understand"
"""Names by which a deployment selects the language model profile."""

MAX_RECENT_TURNS = 6
"""Previous turns in the prompt with their modes, so that a conversation tends to stay in one mode."""

EARLIER_PLACEHOLDER = "{{earlier}}"
"""Where a template shows the earlier items. One of a deployment may lack it: then the rules alone compare items."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Understand:
    """Memories in, `Understood` out."""

    reader: InteractionReader
    model: LanguageModel
    template: Template
    modes: Modes
    words: LexicalIndex
    memories: Memories
    clock: Clock
    pipelines: ActivePipelines
    categories: Categories | None = None

    @property
    def is_on(self) -> bool:
        """True if a model is asked at all."""
        return self.pipelines.is_on(UNDERSTAND)

    @property
    def revision(self) -> int:
        """The revision of the pipelines by which turns are understood."""
        return self.pipelines.number

    async def by_rules(self, memory: Memory) -> Interaction | None:
        """Classify a turn without a language model; None if it is classified already, or needs no classification."""
        return apply_threshold(await self.reader.read(memory)) if needs_understanding(memory) else None

    async def until_available(self) -> None:
        """Wait until the model may be asked; never returns without one."""
        await self.model.until_available(UNDERSTAND_STEP, UNDERSTAND_ROLE)

    def may_ask(self, memory: Memory) -> bool:
        """True if a language model may read this turn now."""
        return may_show_model(memory, self.modes.get(memory.boundary))

    async def by_model(self, memory: Memory, refresh: Refresh | None = None) -> Understood:
        """Ask a language model about a turn; `refresh` is the job that asks again.

        Raises Unavailable if it must be asked again.
        """
        # The items that the turn may contradict, by short names, if the template asks for them.
        earlier: dict[str, Memory] = {}
        if EARLIER_PLACEHOLDER in self.template.text:
            near = EarlierItems(self.words, self.memories, self.modes).near(memory)
            earlier = {f"e{number}": item for number, item in enumerate(near, 1)}
        prompt = self._prompt(memory, earlier)
        try:
            answered = await self.model.ask(UNDERSTAND_STEP, UNDERSTAND_ROLE, prompt, Understanding)
        except Unanswerable as problem:
            return self._event(memory, None, None, UNANSWERABLE_PROFILE, problem.tokens, refresh)
        understanding = answered.answer
        if understanding.categories:
            existing = keep_known_categories(understanding.categories, self._taxonomy(memory))
            understanding = understanding.model_copy(update={"categories": existing})
        understanding = with_known_items(understanding, earlier)
        interaction = await self._with_vote(memory, understanding)
        tokens = answered.tokens_in + answered.tokens_out
        return self._event(memory, interaction, understanding, answered.profile, tokens, refresh)

    def expected_tokens(self, memory: Memory) -> int:
        """Return the number of tokens that asking about a turn takes before it is answered, rather more than less."""
        prompt = self._prompt(memory, {})
        # The most that the earlier items may add: to search for them twice costs more than the estimate is worth.
        earlier = MAX_EARLIER_ITEMS * MAX_EARLIER_CHARS if EARLIER_PLACEHOLDER in self.template.text else 0
        return (len(prompt.system) + len(prompt.user) + earlier) // CHARS_PER_TOKEN

    @property
    def prompt_version(self) -> str:
        """The version of the template that a turn is understood by."""
        return self.template.version

    def _prompt(self, memory: Memory, earlier: Mapping[str, Memory]) -> Prompt:
        # The previous turns that a model may read, oldest first.
        where = MemoryFilter(
            boundary=memory.boundary,
            scope={name: (value,) for name, value in memory.scope.items()},
            until_ms=memory.occurred_ms + 1,
        )
        latest = self.words.memory_columns(memory.boundary).latest(
            where, memory.conversation_id or "", MAX_RECENT_TURNS + 1
        )
        before = [self.memories.get(memory_id) for memory_id in latest if memory_id != memory.memory_id]
        turns = [turn for turn in before if turn is not None and self.may_ask(turn)][-MAX_RECENT_TURNS:]
        return build_understanding_prompt(
            self.template.text,
            self.template.version,
            turn_text=memory.text,
            role=memory.role or "user",
            speaker=memory.speaker,
            occurred_at=memory.occurred_at,
            modes=self.modes.get(memory.boundary).visible((memory.scope[PROJECT_FIELD],)),
            current=memory.mode,
            is_settled=memory.mode_source == "caller",
            recent=[RecentTurn(role=turn.role or "user", mode=turn.mode, text=turn.text) for turn in turns],
            categories=[(category.name, category.description) for category in self._taxonomy(memory).all()],
            earlier=earlier,
            files="\n\n".join(
                f"{cited_place(part, memory.resources)}:\n{part.text}" for part in file_parts(memory, self.memories.get)
            ),
        )

    async def _with_vote(self, memory: Memory, understanding: Understanding) -> Interaction | None:
        if memory.role != "user":
            return None
        vote = None
        if understanding.interaction_mode is not None:
            vote = Interaction(mode=understanding.interaction_mode, confidence=understanding.interaction_confidence)
        try:
            read = await self.reader.read(memory, intent=understanding.intent, model=vote)
        except (ModelMissing, Unavailable):
            return None  # Keep the rest of the answer: asking again would cost again.
        return apply_threshold(read)

    def _taxonomy(self, memory: Memory) -> Taxonomy:
        return Taxonomy() if self.categories is None else self.categories.get(memory.scope)

    def _event(
        self,
        memory: Memory,
        interaction: Interaction | None,
        understanding: Understanding | None,
        profile: str,
        tokens: int,
        refresh: Refresh | None,
    ) -> Understood:
        return Understood(
            memory_id=memory.memory_id,
            text_hash=current_text_hash(memory),
            interaction=interaction,
            found=understanding,
            profile=profile,
            prompt=self.template.version,
            at=self.clock.now(),
            revision=self.revision,
            tokens=tokens,
            refresh=refresh,
        )


MAX_EARLIER_ITEMS = 8
"""Maximum earlier items in a prompt: each costs tokens, and a model compares badly among many."""

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
        is_of_turn = any(quote.memory_id == turn.memory_id for quote in item.evidence)
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
