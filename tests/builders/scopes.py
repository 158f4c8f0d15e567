"""Scope models of deployments: a valid one with more fields, and invalid ones."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, RootModel, field_validator

from schemas.scopes import Scope

Lower = Annotated[str, AfterValidator(str.lower)]


class AgentScope(Scope):
    user_id: Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
    agent_id: Lower = "main"
    channel: Literal["chat", "mail"] = "chat"


class PlainScope(BaseModel):
    """A model that does not inherit from `Scope`."""

    user_id: str
    team: str


class WithoutUser(BaseModel):
    team: str


class WithNumber(BaseModel):
    user_id: str
    shard: int = 0


class WithNothing(BaseModel):
    user_id: str
    team: str | None = None


class WithAlias(BaseModel):
    user_id: str = Field(alias="userId")


class WithAny(BaseModel):
    user_id: str
    team: str = "*"


class WithFactory(BaseModel):
    user_id: str
    team: str = Field(default_factory=str)


class WithTakenName(BaseModel):
    user_id: str
    fields: str


class WithDecorator(BaseModel):
    user_id: str

    @field_validator("user_id")
    @classmethod
    def lower(cls, value: str) -> str:
        return value.lower()


class NoFields(RootModel[str]):
    """A string that looks like a model."""


NO_MODEL = "a string"
