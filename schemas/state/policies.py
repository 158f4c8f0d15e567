"""Authorization policies: which principals may do what in which scopes."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import BaseModel, BeforeValidator, Field, create_model

from schemas.failures import Rejected
from schemas.scope_models import import_path
from schemas.scopes import ANY_VALUE, Scope, ScopeValue, Selector, class_attributes

Permission = Literal["read", "write", "manage", "operate"]
"""`read`: retrieve, assemble and commands that only read; `write`: turns; `manage`: other commands, and triggers.
`operate`: the pipelines of the deployment; only in a grant for all users that names it."""

OPERATOR = "operator"
"""The principal of the command line and of a keyless gateway on loopback. Without a policy only it may operate."""

PERMISSIONS: tuple[Permission, ...] = ("read", "write", "manage")


def _values(value: object) -> object:
    """Normalise the admitted values of a field, given as a string, a list of strings, or `*`; None admits any."""
    if value == ANY_VALUE:
        return None
    return value if isinstance(value, list) else [value]


GrantedValues = Annotated[tuple[ScopeValue, ...] | None, Field(strict=False), BeforeValidator(_values)]


class Grants(Protocol):
    """Says which grants a principal has."""

    def of(self, principal: str) -> tuple["Grant", ...]:
        """Return the grants of a principal; none for an unknown one."""


class Grant(BaseModel, extra="forbid", frozen=True, strict=True):
    """A principal's permissions in some scopes. An omitted project means any, as do further fields of a scope model."""

    boundary_fields: ClassVar[BoundaryFields] = USER_BOUNDARY

    user_id: GrantedValues
    project_id: GrantedValues = None
    may: Annotated[tuple[Permission, ...], Field(strict=False)] = PERMISSIONS

    @property
    def is_for_all(self) -> bool:
        return self.covers_every_user() and self.project_id is None and not self.is_limited

    @property
    def is_limited(self) -> bool:
        """True if it names values of further fields: of a project it has a part."""
        own = {*Grant.model_fields, *self.boundary_fields}
        return any(getattr(self, name) is not None for name in type(self).model_fields if name not in own)

    def covers(self, scope: Scope) -> bool:
        return all(admits(getattr(self, field, None), value) for field, value in scope.model_dump().items())

    def covers_boundary(self, scope: Scope | Selector) -> bool:
        """True if the grant includes the boundary of a scope, in any project."""
        return self._admits({field: getattr(scope, field) for field in self.boundary_fields})

    def covers_user(self, name: str) -> bool:
        """True if the grant includes the boundary of this name, in any project."""
        try:
            return self._admits(self.boundary_fields.values(name))
        except ValueError:
            return False

    def covers_every_user(self) -> bool:
        """True if the grant includes every boundary, in any project."""
        return all(getattr(self, field) is None for field in self.boundary_fields)

    def _admits(self, boundary: Mapping[str, str]) -> bool:
        return all(admits(getattr(self, field), value) for field, value in boundary.items())


class Policy(BaseModel, extra="forbid", frozen=True, strict=True):
    """Grants by principal. Other principals have no permissions."""

    principals: dict[str, Annotated[tuple[Grant, ...], Field(strict=False)]]

    def of(self, principal: str) -> tuple[Grant, ...]:
        return self.principals.get(principal, ())


def admits(values: tuple[str, ...] | None, value: str) -> bool:
    """True if the value is one of these; None admits all."""
    return values is None or value in values


def grant_of(scope: type[Scope]) -> type[Grant]:
    """Return the grant of a deployment with these scopes: it names each field of the boundary, and may name others."""
    boundary, known = scope.boundary_fields, {*Grant.model_fields, *scope.boundary_fields}
    further = [name for name in scope.model_fields if name not in known]
    if boundary == USER_BOUNDARY and not further:
        return Grant
    fields: dict[str, Any] = dict.fromkeys(boundary, (GrantedValues, ...))
    fields |= class_attributes(boundary, fields)
    fields |= dict.fromkeys(further, (GrantedValues, None))
    return create_model("Grant", __base__=Grant, __doc__=Grant.__doc__, **fields)


def policy_of(scope: type[Scope]) -> type[Policy]:
    grant: Any = grant_of(scope)
    if grant is Grant:
        return Policy
    principals: Any = dict[str, Annotated[tuple[grant, ...], Field(strict=False)]]
    return create_model("Policy", __base__=Policy, __doc__=Policy.__doc__, principals=(principals, ...))


GrantsOf = Callable[[str], Iterable[Mapping[str, Any]]]
"""Takes a principal, and returns its grants as the file has them; none for an unknown one."""


MAX_ANSWER_S = 1.0
"""Time of one answer: the event loop waits for it."""


class InstalledGrants:
    """Implements `Grants` over a deployment's function."""

    def __init__(self, grants_of: GrantsOf, grant: type[Grant]) -> None:
        self._grants_of = grants_of
        self._grant = grant
        self._call: Future[tuple[Grant, ...]] = Future()
        self._call.set_result(())

    def of(self, principal: str) -> tuple[Grant, ...]:
        """Return the grants of a principal.

        Raises Rejected, `unavailable`, where the function fails, takes longer than `MAX_ANSWER_S`, or is still at an
        earlier question for which it did.
        """
        if not self._call.done():
            raise _no_answer("does not answer")
        call = self._call = Future()
        # Not a pool: its threads keep a process from ending.
        threading.Thread(target=self._ask, args=(principal, call), name="authorizer", daemon=True).start()
        try:
            return call.result(MAX_ANSWER_S)
        except TimeoutError as problem:
            raise _no_answer("has not answered in time") from problem
        except Exception as problem:
            raise _no_answer(f"failed: {type(problem).__name__}") from problem

    def _ask(self, principal: str, call: Future[tuple[Grant, ...]]) -> None:
        try:
            call.set_result(tuple(self._grant.model_validate(dict(grant)) for grant in self._grants_of(principal)))
        except BaseException as problem:
            call.set_exception(problem)


def _no_answer(reason: str) -> Rejected:
    return Rejected("unavailable", f"the authorizer of the setting AUTHORIZER {reason}")


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
