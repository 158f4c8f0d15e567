"""What the client gives back: typed results, read from the replies of the service.

The bytes of a reply enter; a result leaves, or the error that the service sent. Unknown fields are ignored
(CONTRACT §1).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.retrieval import Hit
from streams.client.failures import MemoryServiceError

Json = dict[str, Any]

_TOLD = ("memory_id", "turn_id", "mode", "mode_source", "version", "duplicate")
"""What the reply to a turn holds (CONTRACT §2)."""


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

    The other fields are what the service replied; without waiting for the reply they are None.
    """

    partition: int
    offset: int
    memory_id: str | None = None
    turn_id: str | None = None
    mode: str | None = None
    mode_source: str | None = None
    version: int | None = None
    """How many different texts this turn has had."""
    duplicate: bool | None = None
    """The same turn with the same content was there already; nothing changed."""
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question found, best first."""

    hits: tuple[Hit, ...]
    warnings: tuple[Notice, ...] = ()
    modes: tuple[str, ...] = ()
    """The modes that were searched."""
    strategy: str = "hybrid"
    """`hybrid`, `lexical` or `cross_mode`; `mixed` where several users' answers differ."""
    intention: Json | None = None
    """The scope's goals, where the service used them; None in an answer for several users."""
    categories: tuple[Json, ...] = ()
    diagnostics: Json = field(default_factory=dict)
    """Figures of the service; by user id in an answer for several users."""


def reply_of(value: bytes) -> Reply:
    """Read a reply (CONTRACT §2). Raises `MemoryServiceError` for an error reply, and for one that can't be read."""
    try:
        body = json.loads(value)
        if body["status"] == "ok":
            return Reply(dict(body["result"]), _notices(body.get("warnings") or ()))
        error = body["error"]
        failure = MemoryServiceError(error["code"], error.get("message", ""), error.get("field"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise unreadable_reply(problem) from problem
    raise failure


def remembered_of(reply: Reply, partition: int, offset: int) -> Remembered:
    """Read the reply to a turn that was written at this place."""
    try:
        told = {name: reply.result[name] for name in _TOLD}
    except KeyError as problem:
        raise unreadable_reply(problem) from problem
    return Remembered(partition, offset, warnings=reply.warnings, **told)


def answer_of(reply: Reply) -> Answer:
    """Read the reply to a question."""
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


def _notices(warnings: Sequence[Json]) -> tuple[Notice, ...]:
    return tuple(Notice(warning["code"], warning.get("message", "")) for warning in warnings)


def unreadable_reply(problem: Exception) -> MemoryServiceError:
    """The error for a reply that lacks what the contract promises."""
    return MemoryServiceError("internal", f"the reply can't be read: {problem!r}")
