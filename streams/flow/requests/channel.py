"""An input topic as the request pipeline serves it, and what handling one of its messages gives."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.policies import Permission
from schemas.records import Outgoing, Record
from schemas.replies import ReplyAddress, SuccessReply


@dataclass(frozen=True, slots=True)
class Channel:
    """One input topic: the messages it carries and how they are served."""

    topic: str
    kinds: Mapping[str, type[Any]]
    """Models by schema name."""
    act: Permission | None
    """The permission that its senders need; None for internal topics."""
    keeps_rejected: bool = False
    """Whether a rejected record becomes a dead letter even if its sender got the error, as turns do."""
    outlives_deadline: bool = False
    """Whether a record past its deadline is handled all the same, without a reply, as turns are."""
    concurrent: bool = False
    """Whether messages are handled concurrently: those that change nothing are."""


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """Where a request wants its reply, and until when, in milliseconds since the epoch."""

    address: ReplyAddress | None = None
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of handling a request: its answer, the events that follow, and the writes to await.

    Without an answer, one of the events leads to it: that event carries the request's headers.
    """

    answer: SuccessReply | None
    events: Sequence[Outgoing] = ()
    pending_writes: Sequence[Awaitable[object]] = ()


Handler = Callable[[Any, Record, ReplyOptions], Awaitable[HandlerResult]]
"""Handles one valid message. May raise Rejected, or Unavailable for a later retry."""
