"""Authorization: checked before a request is handled and before its selector is expanded."""

from typing import Protocol

from schemas.scopes import Scope, Selector
from schemas.state.policies import Permission


class Authorizer(Protocol):
    """Decides what a principal may do. `principal` comes from the record's header; None if it has none."""

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        """Return the part of a selector that a principal may read. Raises Rejected `not_allowed` if that is none."""

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        """Raise Rejected `not_allowed` if the principal may not do this in this scope."""

    def permit_operating(self, principal: str | None) -> None:
        """Raise Rejected `not_allowed` if the principal may not change how the deployment works."""

    def projects(self, principal: str | None, act: Permission, scope: Scope) -> tuple[str, ...] | None:
        """Return the projects of a scope's boundary in which the principal may do this; None for all."""
