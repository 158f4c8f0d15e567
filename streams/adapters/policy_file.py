"""The authorizer over a policy file, read once at the start: a broken file stops the worker and admits no request."""

from pathlib import Path
from typing import Self

from agents.rules.access.grants import narrow_selector, permitted_projects, require_operating, require_permission
from schemas.scopes import Scope, Selector
from schemas.state.policies import Permission, Policy, policy_of


class PolicyFile:
    """Implements `agents.ports.commands.Authorizer`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @classmethod
    def read_from(cls, path: Path, scope: type[Scope] = Scope) -> Self:
        """Read a policy, of a deployment with these scopes, as JSON. Raises OSError, or ValueError with the reason."""
        return cls(policy_of(scope).model_validate_json(path.read_text(encoding="utf-8")))

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        return narrow_selector(self._policy, principal, selector)

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        require_permission(self._policy, principal, act, scope)

    def permit_operating(self, principal: str | None) -> None:
        require_operating(self._policy, principal)

    def projects(self, principal: str | None, act: Permission, scope: Scope | Selector) -> tuple[str, ...] | None:
        return permitted_projects(self._policy, principal, act, scope)
