"""Authorization policies: which principals may do what in which scopes."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from schemas.scopes import ANY_VALUE, Scope, ScopeValue

Permission = Literal["read", "write", "manage", "operate"]
"""`read`: retrieve, assemble and commands that only read; `write`: turns; `manage`: other commands, and triggers.
`operate`: the pipelines of the deployment; it counts in a grant for all users, and is in none that does not name it."""

PERMISSIONS: tuple[Permission, ...] = ("read", "write", "manage")


def _values(value: object) -> object:
    """Normalise the admitted values of a field, given as a string, a list of strings, or `*`; None admits any."""
    if value == ANY_VALUE:
        return None
    return value if isinstance(value, list) else [value]


GrantedValues = Annotated[tuple[ScopeValue, ...] | None, Field(strict=False), BeforeValidator(_values)]


class Grant(BaseModel, extra="forbid", frozen=True, strict=True):
    """A principal's permissions in some scopes. An omitted project means any, as do other fields of a scope model."""

    user_id: GrantedValues
    project_id: GrantedValues = None
    may: Annotated[tuple[Permission, ...], Field(strict=False)] = PERMISSIONS

    @property
    def is_for_all(self) -> bool:
        """True if the grant is for all users and projects."""
        return self.user_id is None and self.project_id is None

    def covers(self, scope: Scope) -> bool:
        """True if the grant includes the scope."""
        return all(admits(getattr(self, field, None), value) for field, value in scope.model_dump().items())


class Policy(BaseModel, extra="forbid", frozen=True, strict=True):
    """Grants by principal. Other principals have no permissions."""

    principals: dict[str, Annotated[tuple[Grant, ...], Field(strict=False)]]


def admits(values: tuple[str, ...] | None, value: str) -> bool:
    """True if the value is one of these; None admits all."""
    return values is None or value in values
