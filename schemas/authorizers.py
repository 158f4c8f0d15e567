"""What says which grants a principal has: the file of the setting `AUTHORIZATION`, or a deployment's own function."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from schemas.failures import Rejected
from schemas.scope_models import import_path
from schemas.scopes import Scope
from schemas.state.policies import Grant, Grants, grant_of, policy_of

GrantsOf = Callable[[str], Iterable[Mapping[str, Any]]]
"""Takes a principal, and returns its grants as the file has them; none for an unknown one."""


class InstalledGrants:
    """Implements `schemas.state.policies.Grants` over a deployment's function."""

    def __init__(self, grants_of: GrantsOf, grant: type[Grant]) -> None:
        self._grants_of = grants_of
        self._grant = grant

    def of(self, principal: str) -> tuple[Grant, ...]:
        """Return the grants of a principal. Raises Rejected, `unavailable`, where the function fails."""
        try:
            return tuple(self._grant.model_validate(dict(grant)) for grant in self._grants_of(principal))
        except Exception as problem:
            message = f"the authorizer of the setting AUTHORIZER failed: {type(problem).__name__}"
            raise Rejected("unavailable", message) from problem


def open_grants(file: Path | None, authorizer: str | None, scope: type[Scope]) -> Grants | None:
    """Open the grants of the settings; None without any. Raises OSError, or ValueError with the setting and reason."""
    if authorizer is None:
        if file is None:
            return None
        try:
            return policy_of(scope).model_validate_json(file.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ValueError(f"setting MODESTREAM_AUTHORIZATION: {problem}") from problem
    if file is not None:
        raise ValueError("setting MODESTREAM_AUTHORIZER: AUTHORIZATION is set as well; choose one of both")
    try:
        function = import_path(authorizer)
    except ValueError as problem:
        raise ValueError(f"setting MODESTREAM_AUTHORIZER: {problem}") from problem
    if not callable(function):
        reason = f"{authorizer!r} can't be called with a principal"
        raise ValueError(f"setting MODESTREAM_AUTHORIZER: {reason}")  # noqa: TRY004 - as every invalid setting
    return InstalledGrants(function, grant_of(scope))
