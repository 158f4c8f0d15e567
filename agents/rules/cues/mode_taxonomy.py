"""The tables of the interaction modes: budgets, kinds to keep and to drop, intents, sticky kinds. Pure.

A deployment may have its own file (setting `TAXONOMY`); `agents/data/mode_taxonomy.json` is the default.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Self, get_args

from modestream_client.contexts import SECTIONS, Section
from modestream_client.vocabulary import InteractionMode
from pydantic import (
    BaseModel,
    Field,
    NonNegativeInt,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from agents.rules.cues.intents import MAX_INTENT_NAME_CHARS, mode_of_intent
from agents.rules.cues.labels import NO_LABELS, SentenceLabel

StickyKind = Literal["safety_requirement", "user_correction", "hard_constraint", "blocking_error"]

KINDS: Mapping[str, SentenceLabel] = {
    label.name.lower(): label
    for label in SentenceLabel
    if label.name and label not in (SentenceLabel.USER, SentenceLabel.ASSISTANT, SentenceLabel.SYSTEM)
}
"""Kinds of turns by their names in a file."""


def _labels(names: Any) -> SentenceLabel:
    names = names if isinstance(names, list) else [names]
    for name in names:
        if not isinstance(name, str) or name not in KINDS:
            raise ValueError(f"{name!r} is not a kind; kinds are {', '.join(sorted(KINDS))}")
    return reduce(or_, (KINDS[name] for name in names), NO_LABELS)


Kinds = Annotated[SentenceLabel, PlainValidator(_labels)]


class ModeTable(BaseModel, frozen=True, extra="forbid"):
    """Budgets and kinds of one interaction mode: kept and dropped.

    `budgets` are tokens by section, of which only the proportions matter. `rules`, `task_state` and
    `relevant_decisions` are the kinds of three sections. Hits of the kinds `keep` move up. Dropped are the kinds
    `drop`, turns said in the modes `drop_said_in`, and with `drop_recent` the last turns of the request's conversation,
    unless they are of a kind to keep. `older_turns`: older turns use the room that evidence leaves.
    """

    budgets: dict[Section, NonNegativeInt]
    rules: Kinds
    task_state: Kinds
    relevant_decisions: Kinds
    keep: Kinds
    drop: Kinds
    drop_said_in: frozenset[InteractionMode]
    drop_recent: bool
    older_turns: bool

    @property
    def drops_anything(self) -> bool:
        """False if the mode keeps turns of all kinds."""
        return bool(self.drop or self.drop_said_in or self.drop_recent)

    @field_validator("budgets")
    @classmethod
    def _has_all_sections(cls, budgets: dict[Section, int]) -> dict[Section, int]:
        if missing := set(SECTIONS) - set(budgets):
            raise ValueError(f"sections without a budget: {', '.join(sorted(missing))}")
        if not sum(budgets.values()):
            raise ValueError("at least one section needs tokens")
        return budgets

    @model_validator(mode="after")
    def _keeps_or_drops(self) -> Self:
        if both := self.keep & self.drop:
            raise ValueError(
                f"both kept and dropped: {', '.join(sorted(name for name in KINDS if KINDS[name] in both))}"
            )
        return self


class ModeTaxonomy(BaseModel, frozen=True, extra="forbid"):
    """The tables of a deployment; `sticky` are priorities by kind, of which higher ones are kept first.

    `replaces` are the versions whose place they take in a deployment.
    """

    version: str = Field(min_length=1, max_length=64)
    replaces: tuple[str, ...] = ()
    modes: dict[InteractionMode, ModeTable]
    intents: dict[str, InteractionMode]
    sticky: dict[StickyKind, int]
    _digest: str = PrivateAttr(default="")

    @field_validator("modes")
    @classmethod
    def _has_all_modes(cls, modes: dict[InteractionMode, ModeTable]) -> dict[InteractionMode, ModeTable]:
        if missing := set(get_args(InteractionMode)) - set(modes):
            raise ValueError(f"modes without a table: {', '.join(sorted(missing))}")
        return modes

    @field_validator("intents")
    @classmethod
    def _names_intents(cls, intents: dict[str, InteractionMode]) -> dict[str, InteractionMode]:
        for intent in intents:
            if intent != intent.strip().lower() or not 0 < len(intent) <= MAX_INTENT_NAME_CHARS:
                raise ValueError(f"{intent!r}: an intent has 1 to {MAX_INTENT_NAME_CHARS} lower-case characters")
        return intents

    @field_validator("sticky")
    @classmethod
    def _keeps_safety(cls, sticky: dict[StickyKind, int]) -> dict[StickyKind, int]:
        if "safety_requirement" not in sticky:
            raise ValueError("safety_requirement is needed: no context may leave safety requirements out")
        if len(set(sticky.values())) < len(sticky):
            raise ValueError("two kinds have the same priority")
        return dict(sorted(sticky.items(), key=lambda item: -item[1]))

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read a file's JSON. Raises ValueError with the place and the reason of each error."""
        try:
            taxonomy = cls.model_validate_json(text)
        except ValidationError as problem:
            errors = (
                "{}: {}".format(".".join(map(str, each["loc"])) or "file", each["msg"]) for each in problem.errors()
            )
            raise ValueError("; ".join(errors)) from problem
        tables = {name: part for name, part in json.loads(text).items() if name not in ("version", "replaces")}
        taxonomy._digest = hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:12]  # noqa: SLF001
        return taxonomy

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the content of its file."""
        return self._digest

    def mode_of(self, intent: str | None) -> InteractionMode:
        return mode_of_intent(intent, self.intents)
