"""Contexts and answers from memory, and the memories they were based on."""

from typing import Any, Literal, get_args

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


class ContextDiagnostics(BaseModel, frozen=True):
    """How a context was made.

    `kept_against_mode`: memories of a kind that the interaction mode drops, kept because they answer the request; the
    best first. `taxonomy_version` is the version of the interaction modes' tables.
    """

    kept_against_mode: list[str] = Field(default_factory=list)
    taxonomy_version: str | None = None


class AssembleResult(BaseModel):
    """A context within its budget, and how it was packed.

    `references` are the ids of the memories in the user message, oldest first. `sections` hold memory ids, each memory
    in one section. `budget` and `tokens` count tokens by section; `tokens` also has `total` for all messages, and
    `question` for a question at their end. `dropped` are considered memories that were left out, oldest first: they did
    not fit, repeat a packed memory, or are of a kind that the interaction mode drops; `diagnostics` names those of such
    a kind that were kept. `sticky` are the memories that were packed before all others, the most important first;
    `breaches` the sticky ones that did not fit. `context_id` names this context.
    """

    messages: list[Message]
    references: list[str]
    sections: dict[Section, list[str]]
    interaction_mode: InteractionMode
    interaction_confidence: Confidence
    budget: dict[Section, int]
    tokens: dict[Section | Literal["total", "question"], int]
    dropped: list[str] = Field(default_factory=list)
    sticky: list[str] = Field(default_factory=list)
    breaches: list[Breach] = Field(default_factory=list)
    context_id: str | None = None
    diagnostics: ContextDiagnostics = ContextDiagnostics()


class AnswerUsage(BaseModel, frozen=True):
    """Cost of an answer, in tokens of the model."""

    prompt_tokens: int
    completion_tokens: int


class ExchangeIds(BaseModel, frozen=True):
    """The ids of the turns made of question and answer."""

    question: str
    answer: str


class AnswerResult(BaseModel):
    """A language model's answer from memory.

    `parsed` is its JSON value where the request has a `response_format`. `references` are the ids of the memories shown
    to the model, `context` is an `AssembleResult` without its messages. `finish_reason` is `stop`, or `length` for an
    answer cut at its maximum of tokens. `stored` is None where nothing was to be stored.
    """

    text: str
    parsed: Any = None
    references: list[str]
    context_id: str | None = None
    context: dict[str, Any]
    profile: str
    usage: AnswerUsage
    finish_reason: str
    stored: ExchangeIds | None = None


class TurnPlace(BaseModel, frozen=True):
    """A turn that a memory comes from, and where its record is on the topic of turns."""

    turn_id: str
    conversation_id: str
    partition: int
    offset: int


class ContextReference(BaseModel, frozen=True):
    """A memory in a context. `score` is None for a memory included regardless of the question."""

    memory_id: str
    version: int
    section: str
    score: float | None = None
    tokens: int
    turns: tuple[TurnPlace, ...] = ()
    forgotten: bool = False


class ContextBasis(BaseModel, frozen=True, extra="allow"):
    """The memories that a context or an answer was based on, without text."""

    context_id: str
    scope: dict[str, str | list[str]]
    at: str
    kind: Literal["assemble", "answer"]
    mode: str | list[str]
    interaction_mode: InteractionMode
    revision: int
    principal: str | None = None
    query_sha256: str
    references: tuple[ContextReference, ...] = ()
    dropped: tuple[str, ...] = ()
    tokens: dict[str, int] = Field({})


class Rated(BaseModel, frozen=True):
    """How many memories were rated."""

    rated: int
