"""What a language model is shown of the layers above the memories, and what its answer decides. Pure.

Enters: layers as an answer shows them, and a model's answer, which may contain anything. Leaves: a prompt of bounded
length, and the depth of the search.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from agents.rules.prompts.prompting import MAX_DESCRIPTION_CHARS, Template, clip_text, fill_prompt
from schemas.messages.retrieval import RetrieveResult
from schemas.models.language import Prompt

Depth = Literal["intention", "categories", "items"]
"""The layer that a search ends in."""

MAX_SHOWN_ENTRIES = 40
"""Entries of the intention in the prompt: those that match the question best."""

MAX_QUESTION_CHARS = 2000
"""Characters of the question in the prompt."""

MAX_REASON_CHARS = 200
"""Characters of a reason that are kept."""


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
        """The layers that have something to show; a category without a summary only has a name."""
        found: list[tuple[Depth, bool]] = [
            ("intention", self.intention is not None),
            ("categories", any(one["summary"] for one in self.categories)),
        ]
        return {depth for depth, is_there in found if is_there}

    def are_those_of(self, result: RetrieveResult) -> bool:
        """True if an answer shows the same, as far as it shows layers."""
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
        """Return the result with the model's profile, and its reason unless that may be about what is gone."""
        reason = {"sufficiency_reason": self.reason} if explain and self.layers.are_those_of(result) else {}
        diagnostics = {**result.diagnostics, "sufficiency_by": self.profile, **reason}
        return result.model_copy(update={"diagnostics": diagnostics})


def build_sufficiency_prompt(template: Template, layers: Layers) -> Prompt:
    """Build the prompt that asks which of these layers suffices. Raises ValueError as `fill_prompt`."""
    parts = {"question": clip_text(layers.question, MAX_QUESTION_CHARS), "layers": "\n".join(_shown(layers))}
    return fill_prompt(template.text, template.version, parts)


def read_depth(answer: SufficiencyAnswer, layers: Layers) -> Depth | None:
    """Return the depth in an answer; None if it names a layer that it was not shown."""
    if answer.sufficient == "none":
        return "items"
    return answer.sufficient if answer.sufficient in layers.depths else None


def _shown(layers: Layers) -> Iterator[str]:
    """Yield the entries of the layers, the best of each first, one a line."""
    entries = [(part, one) for part, ones in (layers.intention or {}).items() for one in ones]
    entries.sort(key=lambda entry: -entry[1]["score"])
    for part, one in entries[:MAX_SHOWN_ENTRIES]:
        yield _line({"layer": "intention", "part": part, "text": one["text"]})
    for one in layers.categories:
        if one["summary"]:
            yield _line({"layer": "categories", "name": one["name"], "text": one["summary"]})


def _line(fields: Mapping[str, str]) -> str:
    clipped = {name: clip_text(text, MAX_DESCRIPTION_CHARS) for name, text in fields.items()}
    return json.dumps(clipped, ensure_ascii=False)
