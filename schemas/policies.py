"""Who may do what in which scopes: what an authorization file says."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from schemas.scopes import ANY_VALUE, Scope, ScopeValue

Permission = Literal["read", "write", "manage"]
"""Retrieve and assemble; turns; commands and triggers."""

PERMISSIONS: tuple[Permission, ...] = ("read", "write", "manage")


def _values(value: object) -> object:
    """The admitted values of one field, None for any: a string, a list of strings, or `*`."""
    if value == ANY_VALUE:
        return None
    return value if isinstance(value, list) else [value]


GrantedValues = Annotated[tuple[ScopeValue, ...] | None, Field(strict=False), BeforeValidator(_values)]


class Grant(BaseModel):
    """What one principal may do in some scopes. The project that is left out is any, as are fields of a scope model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    user_id: GrantedValues
    project_id: GrantedValues = None
    may: Annotated[tuple[Permission, ...], Field(strict=False)] = PERMISSIONS

    def covers(self, scope: Scope) -> bool:
        """Whether a scope is one of these."""
        return all(admits(getattr(self, field, None), value) for field, value in scope.model_dump().items())


class Policy(BaseModel):
    """The grants by principal. Nobody else may do anything."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    principals: dict[str, Annotated[tuple[Grant, ...], Field(strict=False)]]


def admits(values: tuple[str, ...] | None, value: str) -> bool:
    """Whether a value is one of these; None are all."""
    return values is None or value in values
