"""Requests for contexts, and for a language model's answers over them (docs/contract.md)."""

import hashlib
from typing import Annotated, Any, Literal

from modestream_client.arguments import GivenFilters
from modestream_client.contexts import Message
from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS, ContextFormat, InteractionMode, Moment, Role
from pydantic import AfterValidator, BaseModel, Field

from schemas.messages.retrieval import MAX_QUERY_LENGTH, ModeNames
from schemas.scopes import Selector

MIN_BUDGET_TOKENS = 300
"""Tokens. The three messages without any memory take about a third of it."""

MAX_BUDGET_TOKENS = 200_000
"""Tokens of the largest budget, unless the deployment sets another limit."""

DEFAULT_MIN_SCORE = 0.0015
"""Minimum score of evidence, unless the request or the deployment sets another floor. On our thirteen conversations and
on five of LoCoMo it costs no coverage at 2,000 tokens (`docs/contexts_report.md`)."""

DEFAULT_MIN_BEST_SCORE = 0.004
"""Minimum score of the best memory for a query to have any evidence, if the request has no `min_score`. A third of the
questions from other conversations stay below it, and 2 of the 1,777 with an answer (`docs/contexts_report.md`)."""

MAX_PINS = 1000
"""Pins of one request. The budget runs out long before; this bounds the lookups of a request."""

MAX_REQUEST_TEXTS = 100
"""Examples, and texts to remember, of one request."""

MAX_SHOWN_TEXTS = 1000
"""Texts of one request that its model sees anyway: the last ones of a long conversation."""


def text_digest(text: str) -> str:
    """Return the digest of a text for `already_shown`: the first 64 bits of its SHA-256, as hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class RequestText(BaseModel, frozen=True):
    """A text added to the memories of one request without being stored."""

    role: Role
    content: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]


class AssembleRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`assemble.v1`. Without `conversation_id` there is no recent window.

    `reserve_tokens` of the budget are left for the model's answer. Memories with a score below `min_score` are not
    evidence; None is the deployment's own floor. `intent` decides the interaction mode if that is not given. `messages`
    are examples between the system and the user message; `prefix` and `suffix` enclose the memories. With
    `append_query` the messages end with the query between `question_prefix` and `question_suffix`, ready for a model.
    """

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    conversation_id: str | None = None
    mode: ModeNames = None
    budget_tokens: Annotated[int, Field(ge=MIN_BUDGET_TOKENS)] = DEFAULT_BUDGET_TOKENS
    reserve_tokens: Annotated[int, Field(ge=0)] = 0
    format: ContextFormat = "compact"
    min_score: Annotated[float, Field(ge=0, le=1)] | None = None
    interaction_mode: InteractionMode | None = None
    intent: str | None = None
    system_prompt: str | None = None
    messages: Annotated[list[Message], Field(fail_fast=True, max_length=MAX_REQUEST_TEXTS)] = []
    prefix: str | None = None
    suffix: str | None = None
    append_query: bool = False
    question_prefix: str | None = None
    question_suffix: str | None = None
    remember: Annotated[list[RequestText], Field(fail_fast=True, max_length=MAX_REQUEST_TEXTS)] = []
    pins: Annotated[list[str], Field(fail_fast=True, max_length=MAX_PINS)] = []
    filters: GivenFilters = None
    as_of: Moment | None = None
    read_after: Annotated[int, Field(ge=0)] | None = None
    for_model: bool = False
    """The context goes to a language model: private memories are left out."""
    already_shown: Annotated[list[str], Field(fail_fast=True, max_length=MAX_SHOWN_TEXTS)] = []
    """`text_digest` of texts that the model sees anyway: memories with one of these texts are left out."""

    @property
    def question(self) -> str | None:
        """The text of the last message; None where the messages end with the memories."""
        return f"{self.question_prefix or ''}{self.query}{self.question_suffix or ''}" if self.append_query else None


MAX_STOPS = 4
"""Texts of one request that end an answer."""

MAX_ANSWER_TOKENS = 200_000
"""Maximum `max_tokens` of one request; a model may take fewer."""


def _few(stops: list[str]) -> list[str]:
    if len(stops) > MAX_STOPS:
        # Not Pydantic's own limit, which would be the contract's `too_large`.
        raise ValueError(f"an answer has at most {MAX_STOPS} texts that end it")
    return stops


class AnswerSchema(BaseModel, extra="allow", strict=True, frozen=True):
    """The name of an answer's form, and its JSON Schema. Other fields go to the provider unchanged."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}\z")]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class ResponseFormat(BaseModel, extra="ignore", strict=True, frozen=True):
    """The form of an answer: a JSON value that satisfies a schema."""

    type: Literal["json_schema"]
    json_schema: AnswerSchema


class AnswerRequest(AssembleRequest):
    """`answer.v1`: a context whose question a language model answers.

    `profile` names one of the deployment's language models; None is that of the role `answer`. With `store` question
    and answer become turns of the conversation. `max_tokens` and `temperature` are by default those of the profile.
    """

    profile: Annotated[str, Field(max_length=128)] | None = None
    store: bool = True
    response_format: ResponseFormat | None = None
    stop: Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], AfterValidator(_few)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MAX_ANSWER_TOKENS)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
