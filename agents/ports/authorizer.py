"""The door to who may do what: asked before anything of a request is done, and before its selector is expanded."""

from typing import Protocol

from schemas.policies import Permission
from schemas.scopes import Scope, Selector


class Authorizer(Protocol):
    """Knows principals. `principal` is what the record's header says, None where it says nothing."""

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        """The part of a selector that this principal may read. Raises Rejected, `not_allowed`, where that is none."""
        ...

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        """Raises Rejected, `not_allowed`, for what this principal may not do in this scope."""
        ...
