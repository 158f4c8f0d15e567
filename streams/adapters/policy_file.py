"""The authorizer over grants: of a policy file, read once at the start, or of a deployment's own function."""

from agents.rules.access.grants import narrow_selector, permitted_projects, require_operating, require_permission
from schemas.scopes import Scope, Selector
from schemas.state.policies import Grants, Permission


class PolicyFile:
    """Implements `agents.ports.commands.Authorizer`."""

    def __init__(self, policy: Grants) -> None:
        self._policy = policy

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        return narrow_selector(self._policy, principal, selector)

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        require_permission(self._policy, principal, act, scope)

    def permit_operating(self, principal: str | None) -> None:
        require_operating(self._policy, principal)

    def projects(self, principal: str | None, act: Permission, scope: Scope | Selector) -> tuple[str, ...] | None:
        return permitted_projects(self._policy, principal, act, scope)
