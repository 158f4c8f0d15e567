"""The errors of the wire contract, and the exceptions that every part of the system raises."""

from typing import Literal

ErrorCode = Literal[
    "invalid_json", "unknown_schema", "invalid_value", "unknown_scope_field", "selector_refused", "unknown_mode",
    "unknown_command", "not_found", "conflict", "too_large", "reply_topic_refused", "not_allowed", "unavailable",
    "internal",
]  # fmt: skip


class Rejected(Exception):
    """The input can't be processed, now or later: the sender gets the error, a turn becomes a dead letter."""

    def __init__(self, code: ErrorCode, message: str, field: str | None = None) -> None:
        super().__init__(f"{code}: {message}" + (f" ({field})" if field else ""))
        self.code: ErrorCode = code
        self.message = message
        self.field = field

    @property
    def dead_letter_code(self) -> str:
        return self.code


class Poison(Rejected):
    """The record has ended the process repeatedly: always a dead letter, with its own code."""

    def __init__(self, message: str) -> None:
        super().__init__("internal", message)

    @property
    def dead_letter_code(self) -> str:
        return "poison"


class Unavailable(Exception):
    """A dependency can't answer now; the same call may succeed later. Kafka holds the backlog meanwhile."""


class ModelMissing(Exception):
    """An embedder's model is loading or can't be loaded. Loading is retried; callers don't wait for it.

    `code` says why a model could not be fetched; empty otherwise.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class RowTooLarge(Rejected):
    """A table's row would exceed its limit: nothing of it was written, the former value stays."""

    def __init__(self, table: str, size: int, limit_name: str, limit: int) -> None:
        message = f"the row of the table {table!r} would have {size} bytes, at most {limit} ({limit_name}); "
        super().__init__("too_large", message + "shorten or delete its contents")
