"""What a turn is for: the interaction mode, which decides context budgets and never the embedder (seed 002)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

InteractionMode = Literal["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"]

INTERACTION_MODES: tuple[InteractionMode, ...] = ("TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL")

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Interaction(BaseModel):
    """An interaction mode, and how sure its judge is of it."""

    model_config = ConfigDict(frozen=True)

    mode: InteractionMode
    confidence: Confidence
