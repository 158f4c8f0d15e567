"""The result of an assemble request: a prompt within its token budget, and how it was packed."""

from typing import Literal, get_args

from pydantic import BaseModel, Field

from modestream_client.vocabulary import Confidence, InteractionMode

Section = Literal["rules", "task_state", "recent_window", "retrieved_evidence", "relevant_decisions", "capsules"]

SECTIONS: tuple[Section, ...] = get_args(Section)


class Message(BaseModel, frozen=True):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


class Breach(BaseModel, frozen=True):
    """A sticky item that did not fit."""

    memory_id: str
    priority: int
    reason: str


class AssembleResult(BaseModel):
    """A context within its budget, and how it was packed.

    `references` are the ids of the memories in the user message, oldest first. `sections` hold memory ids, each memory
    in one section. `budget` and `tokens` count tokens by section; `tokens` also has `total` for all messages. `dropped`
    are considered memories that were left out, oldest first: they did not fit, repeat a packed memory, or are of a kind
    that the interaction mode drops. `sticky` are the memories that were
    packed before all others, the most important first; `breaches` the sticky ones that did not fit.
    """

    messages: list[Message]
    references: list[str]
    sections: dict[Section, list[str]]
    interaction_mode: InteractionMode
    interaction_confidence: Confidence
    budget: dict[Section, int]
    tokens: dict[Section | Literal["total"], int]
    dropped: list[str] = Field(default_factory=list)
    sticky: list[str] = Field(default_factory=list)
    breaches: list[Breach] = Field(default_factory=list)
