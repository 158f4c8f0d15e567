"""A call: the caller with its grants, its user, and the time limit of its answer; and its failure, `Refused`.

Every transport translates `Refused`: a code, a sentence and a field. Sentences name no broker, topic or file, and hold
no text of a memory.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Protocol, TypedDict, Unpack

from modestream_client.answers import Reply
from modestream_client.records import Written
from modestream_client.transport import OnPartial

from schemas.failures import ErrorCode
from schemas.state.policies import Grant

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
    message = "the memory service can't be reached now; send the same request again later"
    return Refused("unavailable", message, retry_after_s=RETRY_AFTER_S)


def out_of_time(*, writes: bool = False) -> Refused:
    """Return the error of a call without an answer in time; `writes`: it may still take effect."""
    message = "no answer in time; the request can be sent again"
    if writes:
        message = (
            "no answer in time: it may still be carried out; send the same request again, a turn with the same turn_id"
        )
    return Refused("timeout", message, retry_after_s=RETRY_AFTER_S)


def failed() -> Refused:
    """Return the error of a service that failed; the operator finds the cause by the request's id."""
    return Refused("internal", "the memory service failed to answer this request; its log has the reason")


DEFAULT_WAIT_S = 10.0
"""Default seconds of an answer (docs/contract.md)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a call.

    `principal` goes to the service with every request. `grants` are those of the policy; None: no policy, so everything
    except operating, which then needs `is_operator`. `own_user` is the only user that it may name; None: any that its
    grants admit. `name` is for logs and limits, and is never a key.
    """

    name: str = "anonymous"
    principal: str | None = None
    own_user: str | None = None
    grants: tuple[Grant, ...] | None = None
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call about a user. `deadline` is a time of `time.monotonic`, `request_id` names it in logs and on records."""

    caller: Caller
    user_id: str
    deadline: float
    request_id: str = "-"

    @classmethod
    def within(cls, caller: Caller, user_id: str, wait_s: float = DEFAULT_WAIT_S, request_id: str = "-") -> "Call":
        """Return a call that ends within `wait_s` seconds from now."""
        return cls(caller, user_id, time.monotonic() + wait_s, request_id)

    def remaining_s(self) -> float:
        """Return the seconds left. Raises Refused, `timeout`, at 0."""
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise out_of_time()
        return remaining


def own_user_of(caller: Caller) -> str:
    """Return the only user of a caller. Raises Refused, `invalid_value`, for one that may name several."""
    if caller.own_user is None:
        raise Refused("invalid_value", "this key has no user: name the user in the path", "user_id")
    return caller.own_user


Json = dict[str, Any]


class Sending(TypedDict):
    """Keywords of a request. The service drops it after `timeout` seconds, unless `deadline` is false."""

    principal: str | None
    timeout: float
    deadline: NotRequired[bool]
    on_partial: NotRequired[OnPartial | None]


class Backend(Protocol):
    """Requests and replies. Every method raises the client's errors: `MemoryClientError` and its subclasses."""

    async def request(self, topic: str, value: Json, **sending: Unpack[Sending]) -> tuple[Reply, Written]:
        """Send a record with a `scope` to `topic` (without its prefix) and wait for its reply.

        `on_partial` requests partial replies and receives them.
        """
        ...

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        """Send a record and wait until it is written, but not for its effect."""
        ...

    async def partition_of(self, user_id: str) -> int: ...


MAX_BUCKETS = 10_000
"""Maximum remembered names, least recently used first out."""


class Buckets:
    """`rate` a second for each name, and `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = max(1.0, burst)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take one token of a name; return 0, or the seconds until the next one."""
        now = self._clock()
        left, at = self._left.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[name] = (left - 1 if wait_s == 0 else left, now)
        if len(self._left) > MAX_BUCKETS:
            self._left.popitem(last=False)
        return wait_s

    def charge(self, name: str, count: int) -> None:
        """Take tokens of a name even if they are not there: the next `take` waits until they are."""
        left, at = self._left.get(name, (self._burst, self._clock()))
        self._left[name] = (left - count, at)
