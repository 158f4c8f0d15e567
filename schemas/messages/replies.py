"""`reply.v1`: the single reply to a request with `reply_to`, and the partial ones before it (docs/contract.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from schemas.failures import Rejected


@dataclass(frozen=True, slots=True)
class ReplyWarning:
    code: str
    message: str


def warn_of_unknown(arguments: Sequence[str]) -> tuple[ReplyWarning, ...]:
    """Return the warning that names unknown arguments of a command; empty without any."""
    if not arguments:
        return ()
    names = ", ".join(map(repr, arguments))
    message = f"unknown arguments were ignored: {names}; docs/contract.md lists those of each command"
    return (ReplyWarning("unknown_argument", message),)


@dataclass(frozen=True, slots=True)
class ReplyAddress:
    """Destination of a reply, with the request's correlation header, name and bytes unchanged."""

    topic: str
    partition: int | None = None
    correlation: tuple[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class SuccessReply:
    result: BaseModel | dict[str, Any]
    warnings: tuple[ReplyWarning, ...] = ()

    def encode(self) -> bytes:
        warnings = [{"code": warning.code, "message": warning.message} for warning in self.warnings]
        return to_json({"schema": "reply.v1", "status": "ok", "result": self.result, "warnings": warnings})


def encode_error(error: Rejected) -> bytes:
    body = {"code": error.code, "message": error.message, "field": error.field}
    return to_json({"schema": "reply.v1", "status": "error", "error": body})


def encode_partial(number: int, text: str) -> bytes:
    """Return the record value of a partial reply, the next piece of an answer's text."""
    return to_json({"schema": "reply.v1", "status": "partial", "seq": number, "delta": {"text": text}})
