"""Makes summaries and anchors of categories anew when enough of their members has changed.

Enters: a scope. Leaves: the categories as they are kept from now on. Guaranteed: what is written rests on memories that
are there as it is written; whoever shows it later looks again (`agents.rules.categories.visibility`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.categories.medoids import CategoryMedoids
from agents.categories.members import CategoryMembers
from agents.ports.categories import CategoryWriter
from agents.ports.consolidation_run import UNBOUNDED, Allowance
from agents.ports.language_model import LanguageModel
from agents.ports.stores import Memories
from agents.rules.categories.summary import MAX_ANCHORS, is_summary_due, summary_of
from agents.rules.categories.visibility import is_current, visible_category
from agents.rules.prompts.prompting import CHARS_PER_TOKEN, Template, build_summary_prompt
from schemas.categories import Category, CategorySummary
from schemas.failures import Unavailable
from schemas.language import Unanswerable
from schemas.memories import Memory

STEP, ROLE = "categorize.summary", "consolidate"
"""By what a deployment may name a language model profile for this."""

MAX_PROMPT_MEMBERS = 24
"""Members that a language model is told of: those that stand for all, some 1,000 tokens."""

WrittenSummary = tuple[str | None, str | None]
"""A summary, and the profile of the model that wrote it."""


@dataclass(frozen=True, slots=True)
class SummaryModel:
    """Who writes summaries, and by which prompt."""

    model: LanguageModel
    template: Template


class RefreshCategories:
    """A scope in, its categories refreshed in the table."""

    def __init__(
        self,
        categories: CategoryWriter,
        memories: Memories,
        members: CategoryMembers,
        best: CategoryMedoids,
        model: SummaryModel | None = None,
    ) -> None:
        """Take the ports; without a `model` summaries are made of the members' own words."""
        self._categories = categories
        self._memories = memories
        self._members = members
        self._best = best
        self._model = model

    async def refresh(
        self,
        scope: Mapping[str, str],
        *,
        ask_model: bool = False,
        allowance: Allowance = UNBOUNDED,
    ) -> list[Category]:
        """Refresh what is due; returns the categories that read otherwise than before.

        With `ask_model` also those that no model has summed up yet, where one is set and answers. What the allowance
        has no time for is still due; where it has no tokens, the members' own words are taken until it has some.
        """
        taxonomy = self._categories.get(scope)
        members = self._members.of(scope, sorted(taxonomy.categories))
        changed = []
        for category in taxonomy.all():
            ids = members[category.name]
            model = self._model if ask_model and self._may_ask() else None
            if not self._is_due(category, len(ids), model):
                continue
            if allowance.is_over():
                break
            made = await self._made(category, ids, scope, model, allowance)
            if (after := self._kept(made, scope)) is not None:
                changed.append(after)
        return changed

    def clear(self, scope: Mapping[str, str], *, whole: bool = False) -> None:
        """Remove summaries and anchors that rest on what is not there any more, or with `whole` all of them."""
        before = self._categories.get(scope)
        read = (lambda _: None) if whole else self._memories.get
        after = before.with_categories(*(visible_category(one, read) for one in before.all()))
        if after != before:
            self._categories.put(scope, after)

    def _is_due(self, category: Category, size: int, model: SummaryModel | None) -> bool:
        is_unread = model is not None and size > 0 and category.profile is None
        is_broken = not is_current(category, self._memories.get)
        return is_summary_due(category, size) or is_broken or is_unread

    def _kept(self, made: Category, scope: Mapping[str, str]) -> Category | None:
        """Write one category beside the others as they are now; None where it reads as before."""
        now = self._categories.get(scope)
        before = now.find(made.name)
        if before is None:
            return None  # It is gone meanwhile.
        # A member may have been forgotten since it was read.
        made = visible_category(made, self._memories.get)
        reads_otherwise = (made.summary, made.anchors) != (before.summary, before.anchors)
        texts = {name: getattr(made, name) for name in ("summary", "anchors", "rests_on", "profile", "size")}
        after = before.model_copy(update={**texts, "version": before.version + reads_otherwise})
        self._categories.put(scope, now.with_categories(after))
        return after if reads_otherwise else None

    async def _made(
        self,
        category: Category,
        ids: Sequence[str],
        scope: Mapping[str, str],
        model: SummaryModel | None,
        allowance: Allowance,
    ) -> Category:
        """The category with a summary and anchors of these members."""
        told = await self._best.of(ids, scope, MAX_PROMPT_MEMBERS)
        anchors = told[:MAX_ANCHORS]
        written = None if model is None or not told else await _asked(model, category, told, allowance)
        if written is None:
            told, written = anchors, (summary_of(memory.text for memory in anchors), None)
        return category.model_copy(
            update={
                "summary": written[0],
                "profile": written[1],
                "anchors": tuple(memory.memory_id for memory in anchors),
                "rests_on": {memory.memory_id: memory.content_hash for memory in told},
                "size": len(ids),
            }
        )

    def _may_ask(self) -> bool:
        return self._model is not None and self._model.model.available(STEP, ROLE)


async def _asked(
    model: SummaryModel, category: Category, told: Sequence[Memory], allowance: Allowance
) -> WrittenSummary | None:
    """A model's summary and its profile; None where none answers, or none may be asked any more."""
    template = model.template
    prompt = build_summary_prompt(template.text, template.version, category, [memory.text for memory in told])
    if not allowance.may_spend(len(prompt.user) // CHARS_PER_TOKEN):
        return None
    try:
        answered = await model.model.ask(STEP, ROLE, prompt, CategorySummary)
    except (Unavailable, Unanswerable):
        return None
    allowance.spend(answered.tokens_in + answered.tokens_out)
    summary = summary_of([answered.answer.summary])
    return (summary, answered.profile) if summary else None
