"""Interaction modes: what a turn is for. They decide context budgets, never the embedder."""

from modestream_client.vocabulary import Confidence, InteractionMode
from pydantic import BaseModel

INTERACTION_MODES: tuple[InteractionMode, ...] = ("TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL")


class Interaction(BaseModel, frozen=True):
    """An interaction mode with its confidence."""

    mode: InteractionMode
    confidence: Confidence
