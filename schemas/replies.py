"""`reply.v1`: the one answer that every request with `reply_to` gets (CONTRACT §2)."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from schemas.failures import Rejected


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that the sender should know beside the result."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplyAddress:
    """Where the reply goes and what it carries back: the correlation header as it came, name and bytes."""

    topic: str
    partition: int | None = None
    correlation: tuple[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class SuccessReply:
    """A result with its warnings."""

    result: BaseModel | dict[str, Any]
    warnings: tuple[Warned, ...] = ()

    def encode(self) -> bytes:
        """The reply's value."""
        warnings = [{"code": one.code, "message": one.message} for one in self.warnings]
        return to_json({"schema": "reply.v1", "status": "ok", "result": self.result, "warnings": warnings})


def encode_error(error: Rejected) -> bytes:
    """The value of an error reply."""
    body = {"code": error.code, "message": error.message, "field": error.field}
    return to_json({"schema": "reply.v1", "status": "error", "error": body})
