"""`command.v1`: what clients and operators ask of a scope (CONTRACT §6)."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.scopes import Scope


class Command(BaseModel):
    """A command with its arguments, which each command checks by itself."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    command: Annotated[str, Field(min_length=1)]
    scope: Scope
    arguments: dict[str, Any] = Field(default_factory=dict)


class GetMemory(BaseModel):
    """The arguments of `get_memory`."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    memory_id: Annotated[str, Field(min_length=1)]
