"""The client's results, parsed from replies (see `docs/contract.md`). Unknown fields are ignored."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from modestream_client.failures import MemoryServiceError
from modestream_client.hits import Hit
from modestream_client.offsets import Written

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

    The other fields come from the service's reply; without a reply they are None.
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
    def read_after(self) -> str:
        """The turn's place as `"<partition>:<offset>"`: any client that reads after it finds the turn."""
        return Written(self.partition, self.offset).read_after


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
    """Parse the reply to a query."""
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
    """Parse warnings."""
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
