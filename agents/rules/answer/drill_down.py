"""What intention and categories say of a question, and the memories that it rests on. Pure.

Enter: the intentions and categories of the scopes that are read, as they may be shown. Leaves: for each layer what is
about the question, as the answer shows it, the ids of the memories behind it, and whether it suffices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.rules.answer.sufficiency import is_sufficient, match_entries
from agents.rules.answer.term_coverage import TermCoverage
from agents.rules.categories.view import category_text
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.intentions.view import build_intention_view
from agents.rules.query.questions import Question
from schemas.categories import Category
from schemas.intention import INTENTION_PARTS, Intention, IntentionEntry, IntentionPart
from schemas.vectors import MemoryFilter

ScopeFields = Mapping[str, str]

MAX_SCOPES = 10
"""Scopes of one request whose upper layers are looked at, the first by name: a full intention takes some 10 ms to read
and to match. The items of all scopes are searched anyway."""

MAX_LAYER_CATEGORIES = 5
"""Categories of an answer: the best."""

PART_SYNONYMS: Mapping[IntentionPart, str] = {
    "goals": "current goal goals aim",
    "constraints": "current constraint rule requirement limit",
    "blocking_errors": "current blocking error problem",
    "decisions": "decision decided decide",
}
"""What questions call the entries of a list: each has these words beside its own."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """What one layer says of a question: `shown` in the answer, resting on the memories of these ids."""

    shown: list[dict[str, Any]]
    rests_on: frozenset[str]
    suffices: bool


def select_scopes(where: MemoryFilter, roster: MemoryColumns) -> Sequence[ScopeFields]:
    """The scopes that a read selects: the one that it names, or those of them that have memories, in order."""
    named = {name: values[0] for name, values in where.scope.items() if values is not None and len(values) == 1}
    if len(named) == len(where.scope):
        return [named]
    selected = MemoryFilter(boundary=where.boundary, scope=where.scope)
    known = sorted({kind.scope for kind in roster.kinds if kind.admitted(selected)})[:MAX_SCOPES]
    return [{name: dict(scope)[name] for name in where.scope} for scope in known]


def intention_layer(
    views: Sequence[tuple[ScopeFields, Intention]], question: Question, sought: TermCoverage
) -> LayerResult:
    """The entries that still stand and are about the question, best first, with their list and their scope."""
    entries = [
        (scope, part, entry)
        for scope, view in views
        for part in INTENTION_PARTS
        for entry in view.open_entries(part)
        if entry.text
    ]
    texts = [f"{PART_SYNONYMS[part]}: {entry.text}" for _, part, entry in entries]
    found = match_entries(texts, sought)
    return LayerResult(
        shown=[_entry(*entries[one.place], one.share) for one in found],
        rests_on=frozenset(memory_id for one in found for memory_id in _behind(entries[one.place][2])),
        suffices=is_sufficient(found, [entry.text for _, _, entry in entries], question, sought),
    )


def group_by_part(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Entries as a part of an intention; None for none."""
    lists: dict[str, Any] = {
        part: [_without_list(one) for one in shown if one["of"] == part] for part in INTENTION_PARTS
    }
    return lists if shown else None


def category_layer(
    views: Sequence[tuple[ScopeFields, Category]], question: Question, sought: TermCoverage
) -> LayerResult:
    """The categories that are about the question, best first. A description alone suffices for nothing."""
    texts = [category_text(one) for _, one in views]
    found = match_entries(texts, sought)[:MAX_LAYER_CATEGORIES]
    return LayerResult(
        shown=[_category(*views[one.place], one.share) for one in found],
        rests_on=frozenset(memory_id for one in found for memory_id in views[one.place][1].rests_on),
        suffices=is_sufficient(
            [one for one in found if views[one.place][1].summary],
            [one.summary or "" for _, one in views],
            question,
            sought,
        ),
    )


def _entry(scope: ScopeFields, part: IntentionPart, entry: IntentionEntry, share: float) -> dict[str, Any]:
    alone = Intention.model_validate({part: (entry,)})
    [shown] = build_intention_view(alone)[part]
    return {"of": part, **shown, "scope": dict(scope), "score": share}


def _without_list(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "of"}


def _behind(entry: IntentionEntry) -> list[str]:
    return [*entry.memory_ids, *([entry.item_id] if entry.item_id else ())]


def _category(scope: ScopeFields, category: Category, share: float) -> dict[str, Any]:
    fields = category.model_dump(include={"name", "description", "summary", "anchors", "version"}, mode="json")
    return {**fields, "scope": dict(scope), "score": share}
