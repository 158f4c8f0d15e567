"""Authorization policies: which principals may do what in which scopes."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic import BaseModel, BeforeValidator, Field, create_model

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


class Grant(BaseModel, extra="forbid", frozen=True, strict=True):
    """A principal's permissions in some scopes. An omitted project means any, as do other fields of a scope model."""

    boundary_fields: ClassVar[BoundaryFields] = USER_BOUNDARY

    user_id: GrantedValues
    project_id: GrantedValues = None
    may: Annotated[tuple[Permission, ...], Field(strict=False)] = PERMISSIONS

    @property
    def is_for_all(self) -> bool:
        """True if the grant is for all users and projects."""
        return self.covers_every_user() and self.project_id is None

    def covers(self, scope: Scope) -> bool:
        """True if the grant includes the scope."""
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


def admits(values: tuple[str, ...] | None, value: str) -> bool:
    """True if the value is one of these; None admits all."""
    return values is None or value in values


def policy_of(scope: type[Scope]) -> type[Policy]:
    """Return the policy of a deployment with these scopes: its grants name each field of the boundary."""
    boundary = scope.boundary_fields
    if boundary == USER_BOUNDARY:
        return Policy
    fields: dict[str, Any] = dict.fromkeys(boundary, (GrantedValues, ...))
    fields |= class_attributes(boundary, fields)
    grant: Any = create_model("Grant", __base__=Grant, __doc__=Grant.__doc__, **fields)
    principals: Any = dict[str, Annotated[tuple[grant, ...], Field(strict=False)]]
    return create_model("Policy", __base__=Policy, __doc__=Policy.__doc__, principals=(principals, ...))
