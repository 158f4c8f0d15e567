"""Apply limits and authorization to a valid request and narrow its selector, before anything of it is handled."""

from typing import Any

from agents.ports.authorizer import Authorizer
from agents.rules.access.limits import RequestLimits
from schemas.state.policies import Permission


class Admit:
    """Requests in, permitted and narrowed requests out."""

    def __init__(self, authorizer: Authorizer | None = None, limits: RequestLimits | None = None) -> None:
        """Without an `authorizer` every request is permitted."""
        self._authorizer = authorizer
        self._limits = limits or RequestLimits()

    def admit(self, message: Any, act: Permission, principal: str | None) -> Any:
        """Return the message with its selector narrowed to what the principal may read.

        Raises Rejected: `not_allowed`, or the code of a limit.
        """
        if act == "read":
            self._limits.check(message)
        if self._authorizer is None:
            return message
        if act != "read":
            self._authorizer.permit(principal, act, message.scope)
            return message
        return message.model_copy(update={"scope": self._authorizer.narrow(principal, message.scope)})
