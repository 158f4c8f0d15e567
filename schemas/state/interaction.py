"""Interaction modes: what a turn is for. They decide context budgets, never the embedder."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

InteractionMode = Literal["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"]

INTERACTION_MODES: tuple[InteractionMode, ...] = ("TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL")

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Interaction(BaseModel, frozen=True):
    """An interaction mode with its confidence."""

    mode: InteractionMode
    confidence: Confidence
