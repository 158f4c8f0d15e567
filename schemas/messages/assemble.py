"""Assemble requests and the contexts that answer them (docs/contract.md)."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field

from schemas.messages.retrieval import MAX_QUERY_LENGTH
from schemas.scopes import Selector
from schemas.state.interaction import Confidence, InteractionMode

Section = Literal["rules", "task_state", "recent_window", "retrieved_evidence", "relevant_decisions", "capsules"]

SECTIONS: tuple[Section, ...] = get_args(Section)

MIN_BUDGET_TOKENS = 300
"""Tokens. The three messages without any memory take about a third of it."""

DEFAULT_BUDGET_TOKENS = 4000
"""Tokens, for a request without a budget."""

MAX_PINS = 1000
"""Pins of one request. The budget runs out long before; this bounds the lookups of a request."""


class AssembleRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`assemble.v1`. Without `conversation_id` there is no recent window."""

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    conversation_id: str | None = None
    mode: str | list[str] | None = None
    budget_tokens: Annotated[int, Field(ge=MIN_BUDGET_TOKENS)] = DEFAULT_BUDGET_TOKENS
    interaction_mode: InteractionMode | None = None
    intent: str | None = None
    system_prompt: str | None = None
    pins: Annotated[list[str], Field(max_length=MAX_PINS)] = []
    read_after: Annotated[int, Field(ge=0)] | None = None


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

    `sections` hold memory ids, each memory in one section. `budget` and `tokens` count tokens by section; `tokens` also
    has `total` for all three messages. `dropped` are considered memories that were left out, oldest first: they did not
    fit, repeat a packed memory, or are of a kind that the interaction mode drops. `sticky` are the memories that were
    packed before all others, the most important first; `breaches` the sticky ones that did not fit.
    """

    messages: list[Message]
    sections: dict[Section, list[str]]
    interaction_mode: InteractionMode
    interaction_confidence: Confidence
    budget: dict[Section, int]
    tokens: dict[Section | Literal["total"], int]
    dropped: list[str] = Field(default_factory=list)
    sticky: list[str] = Field(default_factory=list)
    breaches: list[Breach] = Field(default_factory=list)
