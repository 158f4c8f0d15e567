"""What intention and categories say of a question, and the memories that it rests on. Pure.

Enter: the intentions and categories of the scopes that are read, as they may be shown. Leaves: for each layer what is
about the question, as the answer shows it, the ids of the memories behind it, and whether it suffices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.rules.answer.sufficiency import matches, suffices
from agents.rules.answer.term_coverage import Sought
from agents.rules.categories.view import words_of
from agents.rules.index.memory_columns import Roster
from agents.rules.intentions.view import shown_intention
from agents.rules.query.questions import Question
from schemas.categories import Category
from schemas.intention import PARTS, Entry, Intention, Part
from schemas.vectors import Where

Scope = Mapping[str, str]

MOST_SCOPES = 10
"""Scopes of one request whose upper layers are looked at, the first by name: a full intention takes some 10 ms to read
and to match. The items of all scopes are searched anyway."""

MOST_CATEGORIES = 5
"""Categories of an answer: the best."""

CALLED: Mapping[Part, str] = {
    "goals": "current goal goals aim",
    "constraints": "current constraint rule requirement limit",
    "blocking_errors": "current blocking error problem",
    "decisions": "decision decided decide",
}
"""What questions call the entries of a list: each has these words beside its own."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer says of a question: `shown` in the answer, resting on the memories of these ids."""

    shown: list[dict[str, Any]]
    rests_on: frozenset[str]
    suffices: bool


def scopes_read(where: Where, roster: Roster) -> Sequence[Scope]:
    """The scopes that a read selects: the one that it names, or those of them that have memories, in order."""
    named = {name: values[0] for name, values in where.scope.items() if values is not None and len(values) == 1}
    if len(named) == len(where.scope):
        return [named]
    selected = Where(boundary=where.boundary, scope=where.scope)
    known = sorted({kind.scope for kind in roster.kinds if kind.admitted(selected)})[:MOST_SCOPES]
    return [{name: dict(scope)[name] for name in where.scope} for scope in known]


def intention_layer(views: Sequence[tuple[Scope, Intention]], question: Question, sought: Sought) -> Layer:
    """The entries that still stand and are about the question, best first, with their list and their scope."""
    entries = [
        (scope, part, entry) for scope, view in views for part in PARTS for entry in view.open(part) if entry.text
    ]
    texts = [f"{CALLED[part]}: {entry.text}" for _, part, entry in entries]
    found = matches(texts, sought)
    return Layer(
        shown=[_entry(*entries[one.place], one.share) for one in found],
        rests_on=frozenset(memory_id for one in found for memory_id in _behind(entries[one.place][2])),
        suffices=suffices(found, [entry.text for _, _, entry in entries], question, sought),
    )


def by_list(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Entries as a part of an intention; None for none."""
    lists: dict[str, Any] = {part: [_without_list(one) for one in shown if one["of"] == part] for part in PARTS}
    return lists if shown else None


def category_layer(views: Sequence[tuple[Scope, Category]], question: Question, sought: Sought) -> Layer:
    """The categories that are about the question, best first. A description alone suffices for nothing."""
    texts = [words_of(one) for _, one in views]
    found = matches(texts, sought)[:MOST_CATEGORIES]
    return Layer(
        shown=[_category(*views[one.place], one.share) for one in found],
        rests_on=frozenset(memory_id for one in found for memory_id in views[one.place][1].rests_on),
        suffices=suffices(
            [one for one in found if views[one.place][1].summary],
            [one.summary or "" for _, one in views],
            question,
            sought,
        ),
    )


def _entry(scope: Scope, part: Part, entry: Entry, share: float) -> dict[str, Any]:
    alone = Intention.model_validate({part: (entry,)})
    [shown] = shown_intention(alone)[part]
    return {"of": part, **shown, "scope": dict(scope), "score": share}


def _without_list(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "of"}


def _behind(entry: Entry) -> list[str]:
    return [*entry.memory_ids, *([entry.item_id] if entry.item_id else ())]


def _category(scope: Scope, category: Category, share: float) -> dict[str, Any]:
    fields = category.model_dump(include={"name", "description", "summary", "anchors", "version"}, mode="json")
    return {**fields, "scope": dict(scope), "score": share}
