"""Types of the request pipeline: an input topic, the options of a reply, the result of a handler."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.ports.clock import SteadyClock
from schemas.failures import Rejected, Unavailable
from schemas.messages.commands import BESIDE_COMMANDS, Command
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyAddress, SuccessReply
from schemas.state.policies import Permission


@dataclass(frozen=True, slots=True)
class Channel:
    """One input topic: the messages it carries and how they are served."""

    topic: str
    kinds: Mapping[str, type[Any]]
    """Models by schema name."""
    act: Permission | None
    """The permission that its senders need; None for internal topics."""
    keeps_rejected: bool = False
    """True if a rejected record becomes a dead letter even if its sender got the error; for turns."""
    outlives_deadline: bool = False
    """True if a record past its deadline is still handled, without a reply; for turns."""
    concurrent: bool = False
    """True if messages are handled concurrently; for those that change nothing."""

    def is_concurrent(self, message: Any) -> bool:
        """True if a message is handled beside those after it."""
        return self.concurrent or (isinstance(message, Command) and message.command in BESIDE_COMMANDS)


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """The address and the deadline of a reply, in milliseconds since the epoch."""

    address: ReplyAddress | None = None
    deadline_ms: int | None = None
    waits_until_s: float | None = None
    """A moment of the steady clock until which the caller waits in any case; None: not known."""

    def is_expired(self, clock: SteadyClock) -> bool:
        """True if the deadline has passed."""
        return self.seconds_left(clock) < 0

    def seconds_left(self, clock: SteadyClock) -> float:
        """Return the seconds until the deadline; negative after it, infinite without one.

        A deadline is a time of day, and the caller's clock or this one may be wrong by hours: a record that is younger
        than the time that its caller has given it is not late.
        """
        if self.deadline_ms is None:
            return math.inf
        left = self.deadline_ms / 1000 - clock.now().timestamp()
        return left if self.waits_until_s is None else max(left, self.waits_until_s - clock.steady_s())


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of handling a request: its answer, the events that follow, and the writes to await.

    Without an answer, one of the events leads to it: that event carries the request's headers.
    """

    answer: SuccessReply | None
    events: Sequence[Outgoing] = ()
    pending_writes: Sequence[Awaitable[object]] = ()


def rejection_of(problem: Exception) -> Rejected:
    """Return the error that a request gets which fails without one of the contract."""
    if isinstance(problem, MemoryError):
        return Rejected("unavailable", "the worker is short of memory; the same request may succeed later")
    if isinstance(problem, Unavailable):
        return Rejected("unavailable", f"{problem}; the same request may succeed later")
    return Rejected("internal", f"{type(problem).__name__}; the worker's log has the rest")


Handler = Callable[[Any, Record, ReplyOptions], Awaitable[HandlerResult]]
"""Handles one valid message. May raise Rejected, or Unavailable for a later retry."""
