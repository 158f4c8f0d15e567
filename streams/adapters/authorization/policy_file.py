"""The authorizer over a file: read once, at the start, so that a broken one stops the worker and lets nobody in."""

from pathlib import Path
from typing import Self

from agents.rules.access.grants import narrow_selector, require_permission
from schemas.policies import Permission, Policy
from schemas.scopes import Scope, Selector


class PolicyFile:
    """Implements `agents.ports.authorizer.Authorizer`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @classmethod
    def read_from(cls, path: Path) -> Self:
        """Read a policy as JSON. Raises OSError, or ValueError that says what is wrong with it."""
        return cls(Policy.model_validate_json(path.read_text(encoding="utf-8")))

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        """The part of a selector that this principal may read."""
        return narrow_selector(self._policy, principal, selector)

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        """Raises Rejected for what this principal may not do."""
        require_permission(self._policy, principal, act, scope)
