"""The errors that every transport translates: `Refused` has a code, a sentence and a field.

Sentences name no broker, topic or file, and hold no text of a memory.
"""

from typing import Literal

from schemas.failures import ErrorCode

RefusalCode = Literal[ErrorCode, "unauthenticated", "method_not_allowed", "too_many_requests", "timeout", "misdirected"]

RETRY_AFTER_S = 2
"""Seconds after which an outage may be over: a restarted worker or broker answers within a few."""


class Refused(Exception):
    """A call that failed: `code` of the contract, `message` for the caller, `field` as the caller named it.

    `retry_after_s` is set where the same call may succeed later. `names_resource`: the value at fault is the name of
    the call's resource, such as a mode in a path.
    """

    def __init__(
        self,
        code: RefusalCode,
        message: str,
        field: str | None = None,
        *,
        retry_after_s: int | None = None,
        names_resource: bool = False,
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" ({field})" if field else ""))
        self.code: RefusalCode = code
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s
        self.names_resource = names_resource


def unavailable() -> Refused:
    """Return the refusal for an unreachable service."""
    message = "the memory service can't be reached now; send the same request again later"
    return Refused("unavailable", message, retry_after_s=RETRY_AFTER_S)


def out_of_time(*, writes: bool = False) -> Refused:
    """Return the error of a call without an answer in time; `writes`: it may still take effect."""
    message = "no answer in time; the request can be sent again"
    if writes:
        message = "no answer in time: the write may still have been stored; send it again with the same turn_id"
    return Refused("timeout", message, retry_after_s=RETRY_AFTER_S)


def failed() -> Refused:
    """Return the error of a service that failed; the operator finds the cause by the request's id."""
    return Refused("internal", "the memory service failed to answer this request; its log has the reason")
