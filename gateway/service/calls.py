"""A call: the caller with its grants, its user, and the time limit of its answer."""

import time
from dataclasses import dataclass

from gateway.service.failures import Refused, out_of_time
from schemas.state.policies import Grant

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
