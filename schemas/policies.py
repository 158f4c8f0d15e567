"""Who may do what in which scopes: what an authorization file says."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from schemas.scopes import ANY, Scope, ScopeValue

Act = Literal["read", "write", "manage"]
"""Retrieve and assemble; turns; commands and triggers."""

ACTS: tuple[Act, ...] = ("read", "write", "manage")


def _values(value: object) -> object:
    """The admitted values of one field, None for any: a string, a list of strings, or `*`."""
    if value == ANY:
        return None
    return value if isinstance(value, list) else [value]


Values = Annotated[tuple[ScopeValue, ...] | None, Field(strict=False), BeforeValidator(_values)]


class Grant(BaseModel):
    """What one principal may do in some scopes. The project that is left out is any, as are fields of a scope model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    user_id: Values
    project_id: Values = None
    may: Annotated[tuple[Act, ...], Field(strict=False)] = ACTS

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
