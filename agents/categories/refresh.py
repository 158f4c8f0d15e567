"""Refresh summaries and anchors of categories when enough of their members have changed.

What is written derives from memories that exist at that time; readers check again
(`agents.rules.categories.taxonomy`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.categories.matching import CategoryMembers
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.commands import UNBOUNDED, Allowance
from agents.ports.indexes import VectorIndex
from agents.ports.models import LanguageModel
from agents.ports.stores import CategoryWriter, Memories
from agents.rules.categories.taxonomy import (
    MAX_ANCHORS,
    is_current,
    is_summary_due,
    select_anchors,
    summary_of,
    visible_category,
)
from agents.rules.prompts.prompting import CHARS_PER_TOKEN, Template, build_summary_prompt
from schemas.failures import ModelMissing, Rejected, RowTooLarge, Unavailable
from schemas.models.language import Unanswerable
from schemas.state.categories import Category, CategorySummary
from schemas.state.memories import Memory

MAX_COMPARED_MEMBERS = 400
"""Members that are compared; a larger category is sampled evenly."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CategoryMedoids:
    """Members in, medoids out. Vectors of different modes are never compared: only the largest mode counts."""

    memories: Memories
    index: VectorIndex
    spaces: VectorSpaces

    def prompt_of(self, memory: Memory) -> str | None:
        """Return what the mode of a member adds to the prompt of a summary; None if it adds nothing, or was deleted."""
        try:
            mode = self.spaces.mode(memory.boundary, memory.mode, memory.scope)
        except Rejected:
            return None
        return mode.prompt_overrides.get("categorize")

    async def of(self, ids: Sequence[str], scope: Mapping[str, str], most: int) -> list[Memory]:
        """Return at most `most` of these members, the most typical first; `ids` come newest first."""
        sample = ids[:: max(1, -(-len(ids) // MAX_COMPARED_MEMBERS))]
        memories = [memory for memory_id in sample if (memory := self.memories.get(memory_id)) is not None]
        if not memories:
            return []
        counts = Counter(memory.mode for memory in memories)
        mode = min(counts, key=lambda name: (-counts[name], name))
        in_mode = [memory for memory in memories if memory.mode == mode]
        try:
            _, space = self.spaces.resolve(self.spaces.mode(memories[0].boundary, mode, scope))
            vectors = await self.index.pooled(space, [memory.memory_id for memory in in_mode])
        except (Unavailable, ModelMissing, Rejected):
            return in_mode[:most]
        embedded = [memory for memory in in_mode if memory.memory_id in vectors]
        if not embedded:
            return in_mode[:most]
        rows = np.stack([vectors[memory.memory_id] for memory in embedded])
        return [embedded[row] for row in select_anchors(rows, most)]


REFRESH_STEP, REFRESH_ROLE = "categorize.summary", "consolidate"
"""Names by which a deployment selects the language model profile."""

MAX_PROMPT_MEMBERS = 24
"""Maximum members in the prompt, most typical first: about 1,000 tokens."""

WrittenSummary = tuple[str | None, str | None]
"""A summary, and the profile of the model that wrote it."""


@dataclass(frozen=True, slots=True)
class SummaryModel:
    """The language model that writes summaries, and its prompt."""

    model: LanguageModel
    template: Template


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefreshCategories:
    """A scope in, its categories refreshed in the table.

    Without a `model` summaries are extracts of members' texts.
    """

    categories: CategoryWriter
    memories: Memories
    members: CategoryMembers
    medoids: CategoryMedoids
    model: SummaryModel | None = None

    async def refresh(
        self, scope: Mapping[str, str], *, ask_model: bool = False, allowance: Allowance = UNBOUNDED
    ) -> list[Category]:
        """Refresh due categories; return those with a changed summary or changed anchors.

        `ask_model`: categories without a model's summary are due, too, if a model is available. Without time left in
        the allowance the rest stays due; without tokens left summaries are extracts.
        """
        taxonomy = self.categories.get(scope)
        members = self.members.of(scope, sorted(taxonomy.categories))
        changed = []
        for category in taxonomy.all():
            ids = members[category.name]
            model = self.model if ask_model else None
            if model is not None and not model.model.available(REFRESH_STEP, REFRESH_ROLE):
                model = None
            is_unread = model is not None and len(ids) > 0 and category.profile is None
            is_broken = not is_current(category, self.memories.get)
            if not (is_summary_due(category, len(ids)) or is_broken or is_unread):
                continue
            if allowance.is_over():
                break
            made = await self._summarise(category, ids, scope, model, allowance)
            if (after := self._write(made, scope)) is not None:
                changed.append(after)
        return changed

    def clear(self, scope: Mapping[str, str]) -> None:
        """Remove summaries and anchors that derive from forgotten memories."""
        before = self.categories.get(scope)
        after = before.with_categories(*(visible_category(category, self.memories.get) for category in before.all()))
        if after != before:
            self.categories.put(scope, after)

    def _write(self, made: Category, scope: Mapping[str, str]) -> Category | None:
        """Write one category into the current taxonomy; None if summary and anchors are unchanged."""
        now = self.categories.get(scope)
        before = now.find(made.name)
        if before is None:
            return None  # It was deleted or renamed in the meantime.
        # A member may have been forgotten since it was read.
        made = visible_category(made, self.memories.get)
        is_changed = (made.summary, made.anchors) != (before.summary, before.anchors)
        texts = {name: getattr(made, name) for name in ("summary", "anchors", "rests_on", "profile", "size")}
        after = before.model_copy(update={**texts, "version": before.version + is_changed})
        try:
            self.categories.put(scope, now.with_categories(after))
        except RowTooLarge:
            # A summary is derived: the former one stays, and a command that only reads is answered.
            return None
        return after if is_changed else None

    async def _summarise(
        self,
        category: Category,
        ids: Sequence[str],
        scope: Mapping[str, str],
        model: SummaryModel | None,
        allowance: Allowance,
    ) -> Category:
        sources = await self.medoids.of(ids, scope, MAX_PROMPT_MEMBERS)
        anchors = sources[:MAX_ANCHORS]
        shown = [memory for memory in sources if not memory.visibility.private]
        written = None if model is None or not shown else await self._ask(model, category, shown, allowance)
        if written is not None:
            sources = [*shown, *(memory for memory in anchors if memory not in shown)]
        else:
            sources, written = anchors, (summary_of(memory.text for memory in anchors), None)
        return category.model_copy(
            update={
                "summary": written[0],
                "profile": written[1],
                "anchors": tuple(memory.memory_id for memory in anchors),
                "rests_on": {memory.memory_id: memory.content_hash for memory in sources},
                "size": len(ids),
            }
        )

    async def _ask(
        self, model: SummaryModel, category: Category, sources: Sequence[Memory], allowance: Allowance
    ) -> WrittenSummary | None:
        """Return a model's summary and its profile; None without a valid answer or without tokens left."""
        # All of them are of one mode.
        mode_prompt = self.medoids.prompt_of(sources[0])
        prompt = build_summary_prompt(model.template, category, [memory.text for memory in sources], mode_prompt)
        if not allowance.may_spend(len(prompt.user) // CHARS_PER_TOKEN):
            return None
        try:
            answered = await model.model.ask(REFRESH_STEP, REFRESH_ROLE, prompt, CategorySummary)
        except (Unavailable, Unanswerable):
            return None
        allowance.spend(answered.tokens_in + answered.tokens_out)
        summary = summary_of([answered.answer.summary])
        return (summary, answered.profile) if summary else None
