"""What keys and tokens share: the caller that a principal stands for, and the bound on failed attempts."""

from gateway.service.buckets import Buckets
from gateway.service.calls import Caller
from gateway.service.failures import Refused
from schemas.state.policies import Policy


def caller_for(name: str, principal: str, own_user: str | None, policy: Policy | None) -> Caller:
    """Return the caller with the grants of its principal: none where the policy does not name it."""
    grants = None if policy is None else policy.principals.get(principal, ())
    return Caller(name, principal, own_user, grants)


class FailedLogins:
    """Counts failed attempts by address."""

    def __init__(self, per_minute: float) -> None:
        self._buckets = Buckets(per_minute / 60, per_minute)

    def count(self, address: str, what: str) -> None:
        """Count one; `what` names what failed. Raises Refused, `too_many_requests`, for one too many."""
        wait_s = self._buckets.take(address)
        if wait_s > 0:
            message = f"too many {what} from this address"
            raise Refused("too_many_requests", message, retry_after_s=round(wait_s) or 1)
