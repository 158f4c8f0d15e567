"""Turn replies into the results of calls: answers, contexts, pages, merged answers of several users. Pure.

Enters: replies, as described in docs/contract.md. Unknown fields are ignored. Ranks of several users are compared, not
scores: a score is relative to one user's memories.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from modestream_client.contexts import AnswerResult, AnswerUsage, AssembleResult, Breach, ExchangeIds
from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout
from modestream_client.hits import Hit
from modestream_client.records import Written

Json = dict[str, Any]

Model = TypeVar("Model", bound=BaseModel)

TURN_REPLY_FIELDS = ("memory_id", "turn_id", "mode", "mode_source", "version", "duplicate")
"""Fields of the reply to a turn."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning of the service, such as `not_caught_up`, `degraded`, `other_modes` or `forgotten`."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with status `ok`."""

    result: Json
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """A turn that Kafka has acknowledged, at `offset` of `partition` of the turns topic.

    The other fields come from the service's reply; without a reply they are None. A turn that waits in the client's
    outbox has -1 for both numbers, its id, and the warning `queued`.
    """

    partition: int
    offset: int
    memory_id: str | None = None
    turn_id: str | None = None
    mode: str | None = None
    mode_source: str | None = None
    version: int | None = None
    """Number of different texts that this turn has had."""
    duplicate: bool | None = None
    """True if the same turn with the same content existed already; nothing changed."""
    warnings: tuple[Notice, ...] = ()

    @property
    def is_queued(self) -> bool:
        """True if the turn waits in the client's outbox."""
        return self.offset < 0

    @property
    def read_after(self) -> str:
        """The turn's place as `"<partition>:<offset>"`: any client that reads after it finds the turn.

        Raises ValueError while the turn waits in the outbox.
        """
        if self.is_queued:
            raise ValueError("the turn waits in the outbox: it has no position in Kafka yet")
        return Written(self.partition, self.offset).read_after


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file that was stored: its turn, and the resource with `uri`, `sha256`, `bytes`, `media_type` and `status`."""

    turn: Remembered
    resource: Json


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of a query, best first."""

    hits: tuple[Hit, ...]
    warnings: tuple[Notice, ...] = ()
    modes: tuple[str, ...] = ()
    """The searched modes."""
    strategy: str = "hybrid"
    """`hybrid`, `lexical` or `cross_mode`; `mixed` if the answers of several users differ."""
    intention: Json | None = None
    """The scope's goals, if the service used them; None in an answer for several users."""
    categories: tuple[Json, ...] = ()
    diagnostics: Json = field(default_factory=dict)
    """Diagnostics of the service; by user id in an answer for several users."""


def reply_of(value: bytes) -> Reply:
    """Parse a reply. Raises `MemoryServiceError` for an error reply and for an unreadable one."""
    try:
        body = json.loads(value)
        if body["status"] == "ok":
            return Reply(dict(body["result"]), notices_of(body.get("warnings") or ()))
        error = body["error"]
        failure = MemoryServiceError(error["code"], error.get("message", ""), error.get("field"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise unreadable_reply(problem) from problem
    raise failure


def remembered_of(reply: Reply, place: Written | None) -> Remembered:
    """Parse the reply to a turn that was written at this place."""
    if place is None:
        raise unreadable_reply(KeyError("read_after"))
    try:
        fields = {name: reply.result[name] for name in TURN_REPLY_FIELDS}
    except KeyError as problem:
        raise unreadable_reply(problem) from problem
    return Remembered(*place, warnings=reply.warnings, **fields)


def answer_of(reply: Reply) -> Answer:
    result = reply.result
    try:
        return Answer(
            hits=tuple(Hit.model_validate(hit) for hit in result["hits"]),
            warnings=reply.warnings,
            modes=tuple(result.get("modes") or ()),
            strategy=str(result.get("strategy")),
            intention=result.get("intention"),
            categories=tuple(result.get("categories") or ()),
            diagnostics=dict(result.get("diagnostics") or {}),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise unreadable_reply(problem) from problem


def notices_of(warnings: Sequence[Json]) -> tuple[Notice, ...]:
    return tuple(Notice(warning["code"], warning.get("message", "")) for warning in warnings)


def parse_as(model: type[Model], result: object) -> Model:
    """Validate a result. Raises `MemoryServiceError` if it violates the contract."""
    try:
        return model.model_validate(result)
    except ValidationError as problem:
        raise unreadable_reply(problem) from problem


def unreadable_reply(problem: Exception) -> MemoryServiceError:
    """Build the error for a reply that violates the contract."""
    return MemoryServiceError("internal", f"the reply can't be read: {problem!r}")


ChatMessage = dict[str, str]
"""`role` and `content`, as chat models take them."""


@dataclass(frozen=True, slots=True)
class Context:
    """A prompt within its token budget, and how it was made."""

    messages: list[ChatMessage]
    """System, examples, user with the memories as JSON, assistant; with `append_query` the question."""
    references: tuple[str, ...]
    """Ids of the memories in the user message, by their places."""
    interaction_mode: str
    """The purpose of the query: `TASK`, `EXPLORATION`, `DEBUGGING`, `LEARNING` or `GENERAL`."""
    interaction_confidence: float
    sections: Mapping[str, list[str]]
    """Memory ids by section."""
    budget: Mapping[str, int]
    """Token limit of each section."""
    tokens: Mapping[str, int]
    """Tokens of each section; `total` counts all messages, `question` the appended one."""
    dropped: tuple[str, ...] = ()
    """Memories that were considered and left out, oldest first."""
    sticky: tuple[str, ...] = ()
    """Memories with priority over all others: safety, the user's corrections, constraints, current errors."""
    breaches: tuple[Breach, ...] = ()
    """Sticky memories that did not fit."""
    kept_against_mode: tuple[str, ...] = ()
    """Memories of a kind that the interaction mode drops, kept because they answer the request; the best first."""
    context_id: str | None = None
    """Names this context for `get_context` and `rate`."""
    warnings: tuple[Notice, ...] = ()


def context_of(reply: Reply) -> Context:
    """Parse the reply to an assemble request. Raises `MemoryServiceError` if it violates the contract."""
    try:
        result = AssembleResult.model_validate(reply.result)
    except ValidationError as problem:
        raise unreadable_reply(problem) from problem
    return Context(
        messages=[{"role": message.role, "content": message.content} for message in result.messages],
        references=tuple(result.references),
        interaction_mode=result.interaction_mode,
        interaction_confidence=result.interaction_confidence,
        sections={str(name): ids for name, ids in result.sections.items()},
        budget={str(name): tokens for name, tokens in result.budget.items()},
        tokens={str(name): tokens for name, tokens in result.tokens.items()},
        dropped=tuple(result.dropped),
        sticky=tuple(result.sticky),
        breaches=tuple(result.breaches),
        kept_against_mode=tuple(result.diagnostics.kept_against_mode),
        context_id=result.context_id,
        warnings=reply.warnings,
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """A language model's answer from memory."""

    text: str
    parsed: Any
    """The JSON value of an answer with a `response_format`, else None."""
    references: tuple[str, ...]
    """Ids of the memories shown to the model."""
    context_id: str | None
    context: Json
    """How the context was made: the result of `assemble`, without its messages."""
    profile: str
    usage: AnswerUsage
    finish_reason: str
    """`stop`, or `length` for an answer cut at its maximum of tokens."""
    stored: ExchangeIds | None
    """The ids of the turns made of question and answer; None with `store=False`."""
    warnings: tuple[Notice, ...] = ()


def answered_of(reply: Reply) -> Answered:
    """Parse the reply to a question for the language model. Raises `MemoryServiceError` if it violates the contract."""
    result = parse_as(AnswerResult, reply.result)
    return Answered(
        text=result.text,
        parsed=result.parsed,
        references=tuple(result.references),
        context_id=result.context_id,
        context=result.context,
        profile=result.profile,
        usage=result.usage,
        finish_reason=result.finish_reason,
        stored=result.stored,
        warnings=reply.warnings,
    )


def partial_of(value: bytes | None) -> tuple[int, str] | None:
    """Return number and text of a partial reply; None for any other record."""
    try:
        body = json.loads(value or b"")
        return (int(body["seq"]), str(body["delta"]["text"])) if body["status"] == "partial" else None
    except (ValueError, KeyError, TypeError):
        return None


class StreamedText:
    """The text of a streamed answer: after a lost piece, later ones wait for the whole text."""

    def __init__(self) -> None:
        self._next = 0
        self._text = ""

    def take(self, number: int, piece: str) -> bool:
        """Take a piece; return whether it is the next one of the text."""
        if number != self._next:
            return False
        self._next += 1
        self._text += piece
        return True

    def rest_of(self, text: str) -> str:
        """Return the part of the whole text that no piece had."""
        return text.removeprefix(self._text) if text.startswith(self._text) else ""


Item = TypeVar("Item", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list. `next` is the `cursor` of the next page, None at the end; `total` counts all matches."""

    items: tuple[Item, ...]
    next: str | None
    total: int
    warnings: tuple[Notice, ...] = ()


class _Place(BaseModel):
    next: str | None = None
    total: int
    items: list[object]


def page_of(reply: Reply, model: type[Item]) -> Page[Item]:
    """Parse the reply to a list request. Raises `MemoryServiceError` if it violates the contract."""
    place = parse_as(_Place, reply.result)
    return Page(tuple(parse_as(model, item) for item in place.items), place.next, place.total, reply.warnings)


MIXED = "mixed"
"""The strategy of an answer that merges answers of different strategies."""


def merge_answers(outcomes: Mapping[str, Answer | BaseException], top_k: int, *, partial: bool) -> Answer:
    """Merge outcomes by user id; the answer of a single user is returned unchanged.

    Raises the first failure, in the order of the users. With `partial` a `MemoryClientError` becomes a warning instead
    as long as any user has an answer.
    """
    answers = {user: outcome for user, outcome in outcomes.items() if isinstance(outcome, Answer)}
    failures = {user: outcome for user, outcome in outcomes.items() if isinstance(outcome, MemoryClientError)}
    for outcome in outcomes.values():
        tolerated = partial and answers and isinstance(outcome, MemoryClientError)
        if isinstance(outcome, BaseException) and not tolerated:
            raise outcome
    every = list(answers.values())
    if len(outcomes) == 1:
        return every[0]
    strategies = {answer.strategy for answer in every}
    warnings = dict.fromkeys(notice for answer in every for notice in answer.warnings)
    return Answer(
        hits=merge_by_rank([answer.hits for answer in every], top_k),
        warnings=(*warnings, *(_notice_of(user, failure) for user, failure in failures.items())),
        modes=tuple(dict.fromkeys(mode for answer in every for mode in answer.modes)),
        strategy=strategies.pop() if len(strategies) == 1 else MIXED,
        categories=tuple(category for answer in every for category in answer.categories),
        diagnostics={user: answer.diagnostics for user, answer in answers.items()},
    )


def merge_by_rank(rankings: Sequence[Sequence[Hit]], top_k: int) -> tuple[Hit, ...]:
    """Interleave rankings to `top_k` hits: all first ones in the order of `rankings`, then all second ones, and so on.

    This is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) with stable ties: a memory belongs to
    one user, so each hit has one rank, and 1 / (k + rank) falls with it for every k.
    """
    return tuple(islice((hit for hit in chain(*zip_longest(*rankings)) if hit is not None), top_k))


def _notice_of(user: str, failure: MemoryClientError) -> Notice:
    code = "timeout" if isinstance(failure, MemoryTimeout) else getattr(failure, "code", "unavailable")
    return Notice(code, f"no answer for the user {user}: {failure}")
