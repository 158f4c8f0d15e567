"""Answer a question from the upper layers, intention and categories, before searching memories. Pure.

Each layer returns its matching entries as shown in the answer, the ids of the memories behind them, and whether they
suffice. A language model may judge the layers instead: its prompt has a bounded length, its answer may contain
anything.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from agents.rules.answer.hits import TermCoverage, is_sufficient, match_entries
from agents.rules.categories.taxonomy import category_text
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.intentions.transitions import build_intention_view
from agents.rules.prompts.prompting import MAX_DESCRIPTION_CHARS, Template, clip_text, fill_prompt
from agents.rules.query.questions import Question
from schemas.messages.retrieval import RetrieveResult
from schemas.models.language import Prompt
from schemas.models.vectors import MemoryFilter
from schemas.scopes import ScopeFields
from schemas.state.categories import Category
from schemas.state.intention import INTENTION_PARTS, Intention, IntentionEntry, IntentionPart
from schemas.state.memories import ReadMemory

MAX_SCOPES = 10
"""Scopes per request with a search of the upper layers, first by name: reading and matching a full intention takes
about 10 ms. Items of all scopes are searched regardless."""

MAX_LAYER_CATEGORIES = 5
"""Best categories in an answer."""

PART_SYNONYMS: Mapping[IntentionPart, str] = {
    "goals": "current goal goals aim",
    "constraints": "current constraint rule requirement limit",
    "blocking_errors": "current blocking error problem",
    "decisions": "decision decided decide",
}
"""Words of questions about the entries of each part; they are matched together with an entry's text."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """Matches of one layer: `shown` in the answer, `rests_on` are the ids of the memories behind them."""

    shown: list[dict[str, Any]]
    rests_on: frozenset[str]
    suffices: bool


def select_scopes(where: MemoryFilter, columns: MemoryColumns) -> Sequence[ScopeFields]:
    """Return the scopes that a filter selects: the single scope it names, or all that have memories, in order."""
    named = {name: values[0] for name, values in where.scope.items() if values is not None and len(values) == 1}
    if len(named) == len(where.scope):
        return [named]
    selected = MemoryFilter(boundary=where.boundary, scope=where.scope)
    scopes = sorted({kind.scope for kind in columns.kinds if kind.admitted(selected)})[:MAX_SCOPES]
    return [{name: dict(scope)[name] for name in where.scope} for scope in scopes]


def intention_layer(
    views: Sequence[tuple[ScopeFields, Intention]],
    question: Question,
    coverage: TermCoverage,
    read: ReadMemory | None = None,
) -> LayerResult:
    """Match the open entries of the intentions, best first, with their part and scope.

    With `read` only those that rest on memories which it returns.
    """
    entries = [
        (scope, part, visible)
        for scope, view in views
        for part in INTENTION_PARTS
        for entry in view.open_entries(part)
        if entry.text and (visible := entry if read is None else _restricted(entry, read))
    ]
    texts = [f"{PART_SYNONYMS[part]}: {entry.text}" for _, part, entry in entries]
    matches = match_entries(texts, coverage)
    shown: list[dict[str, Any]] = []
    for match in matches:
        scope, part, entry = entries[match.place]
        [view_of_entry] = build_intention_view(Intention.model_validate({part: (entry,)}))[part]
        shown.append({"of": part, **view_of_entry, "scope": dict(scope), "score": match.share})
    return LayerResult(
        shown=shown,
        rests_on=frozenset(
            memory_id
            for _, _, entry in (entries[match.place] for match in matches)
            for memory_id in (*entry.memory_ids, *([entry.item_id] if entry.item_id else ()))
        ),
        suffices=is_sufficient(matches, [entry.text for _, _, entry in entries], question, coverage),
    )


def _restricted(entry: IntentionEntry, read: ReadMemory) -> IntentionEntry | None:
    # Entries of the command `set_intention` rest on no memory, and match nothing.
    behind = (*entry.memory_ids, *([entry.item_id] if entry.item_id else ()))
    if not behind or any(read(memory_id) is None for memory_id in behind):
        return None
    return entry.model_copy(update={"advanced_by": tuple(each for each in entry.advanced_by if read(each))})


def group_by_part(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Group shown entries by part of the intention; None without entries."""
    if not shown:
        return None
    return {
        part: [{name: entry[name] for name in entry if name != "of"} for entry in shown if entry["of"] == part]
        for part in INTENTION_PARTS
    }


def category_layer(
    views: Sequence[tuple[ScopeFields, Category]], question: Question, coverage: TermCoverage
) -> LayerResult:
    """Match the categories, best first. Only summaries can suffice, descriptions can't."""
    texts = [category_text(view) for _, view in views]
    matches = match_entries(texts, coverage)[:MAX_LAYER_CATEGORIES]
    shown: list[dict[str, Any]] = []
    for match in matches:
        scope, category = views[match.place]
        fields = category.model_dump(include={"name", "description", "summary", "anchors", "version"}, mode="json")
        shown.append({**fields, "scope": dict(scope), "score": match.share})
    return LayerResult(
        shown=shown,
        rests_on=frozenset(memory_id for match in matches for memory_id in views[match.place][1].rests_on),
        suffices=is_sufficient(
            [match for match in matches if views[match.place][1].summary],
            [view.summary or "" for _, view in views],
            question,
            coverage,
        ),
    )


Depth = Literal["intention", "categories", "items"]
"""The layer that a search ends in."""

MAX_SHOWN_ENTRIES = 40
"""Entries of the intention in the prompt: those that match the question best."""

MAX_QUESTION_CHARS = 2000
"""Characters of the question in the prompt."""

MAX_REASON_CHARS = 200


class SufficiencyAnswer(BaseModel, frozen=True, extra="ignore"):
    """The topmost layer that answers the question by itself, and why."""

    sufficient: Literal["intention", "categories", "none"]
    reason: str = ""


class Layers(NamedTuple):
    """The layers above the memories that match a question, as an answer shows them.

    `is_private`: one of the memories behind them is, so that no language model may read them.
    """

    question: str
    intention: Mapping[str, Sequence[Mapping[str, Any]]] | None
    categories: Sequence[Mapping[str, Any]]
    is_private: bool = False

    @property
    def depths(self) -> set[Depth]:
        """The layers with content to show; a category without a summary only has a name."""
        layers: list[tuple[Depth, bool]] = [
            ("intention", self.intention is not None),
            ("categories", any(category["summary"] for category in self.categories)),
        ]
        return {depth for depth, is_there in layers if is_there}

    def are_those_of(self, result: RetrieveResult) -> bool:
        """True if both show the same layers in an answer."""
        shows_categories = result.diagnostics.get("depth") != "intention"
        same_categories = not shows_categories or list(self.categories) == result.categories
        return self.intention == result.intention and same_categories


class JudgedDepth(NamedTuple):
    """The depth that a model has decided, its reason, the profile of the model, and the layers that it was shown."""

    depth: Depth
    reason: str
    profile: str
    layers: Layers

    def noted(self, result: RetrieveResult, *, explain: bool) -> RetrieveResult:
        """Return the result with the model's profile, and its reason unless that may be about forgotten data."""
        reason = {"sufficiency_reason": self.reason} if explain and self.layers.are_those_of(result) else {}
        diagnostics = {**result.diagnostics, "sufficiency_by": self.profile, **reason}
        return result.model_copy(update={"diagnostics": diagnostics})


def build_sufficiency_prompt(template: Template, layers: Layers) -> Prompt:
    """Build the prompt that asks which of these layers suffices. Raises ValueError as `fill_prompt`."""
    scored = [(part, entry) for part, entries in (layers.intention or {}).items() for entry in entries]
    scored.sort(key=lambda part_and_entry: -part_and_entry[1]["score"])
    lines = [
        _line({"layer": "intention", "part": part, "text": entry["text"]}) for part, entry in scored[:MAX_SHOWN_ENTRIES]
    ]
    lines += [
        _line({"layer": "categories", "name": category["name"], "text": category["summary"]})
        for category in layers.categories
        if category["summary"]
    ]
    parts = {"question": clip_text(layers.question, MAX_QUESTION_CHARS), "layers": "\n".join(lines)}
    return fill_prompt(template.text, template.version, parts)


def read_depth(answer: SufficiencyAnswer, layers: Layers) -> Depth | None:
    """Return the depth in an answer; None if it names a layer that was not shown."""
    if answer.sufficient == "none":
        return "items"
    return answer.sufficient if answer.sufficient in layers.depths else None


def _line(fields: Mapping[str, str]) -> str:
    clipped = {name: clip_text(text, MAX_DESCRIPTION_CHARS) for name, text in fields.items()}
    return json.dumps(clipped, ensure_ascii=False)
