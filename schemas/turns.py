"""`turn.v1`: one turn of a conversation as a producer publishes it, and the result that answers it (CONTRACT §4)."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.memories import Resource, Role
from schemas.modes import ModeSource
from schemas.moments import Moment
from schemas.scopes import Scope

MAX_CONTENT_LENGTH = 32768
"""Code points of a turn's content (CONTRACT §4)."""

MAX_ID_LENGTH = 512
"""Characters of an id that a producer chooses: ours, the contract sets none."""

Identifier = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]


class Turn(BaseModel):
    """What a producer publishes. Fields that are not named here are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    turn_id: Identifier | None = None
    scope: Scope
    conversation_id: Identifier
    role: Role
    speaker: Annotated[str, Field(max_length=MAX_ID_LENGTH)] | None = None
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)]
    occurred_at: Moment | None = None
    mode: str | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    resources: tuple[Resource, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class TurnAccepted(BaseModel):
    """The result that a turn is answered with."""

    memory_id: str
    turn_id: str
    mode: str
    mode_source: ModeSource
    version: int
    duplicate: bool
