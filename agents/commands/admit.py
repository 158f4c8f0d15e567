"""A valid request in, the request as its sender may make it out: capped, permitted, its selector narrowed.

Nothing of a request is looked at before. What is refused here was not even expanded.
"""

from typing import Any

from agents.ports.authorizer import Authorizer
from agents.rules.access.limits import RequestLimits
from schemas.policies import Permission


class Admit:
    """Lets requests in."""

    def __init__(self, authorizer: Authorizer | None = None, caps: RequestLimits | None = None) -> None:
        """Take who knows the principals, None for no authorization at all, and the caps."""
        self._authorizer = authorizer
        self._caps = caps or RequestLimits()

    def admit(self, message: Any, act: Permission, principal: str | None) -> Any:
        """The message, its selector narrowed to what its sender may read.

        Raises Rejected: `not_allowed`, or what a cap says.
        """
        if act == "read":
            self._caps.check(message)
        if self._authorizer is None:
            return message
        if act != "read":
            self._authorizer.permit(principal, act, message.scope)
            return message
        return message.model_copy(update={"scope": self._authorizer.narrow(principal, message.scope)})
