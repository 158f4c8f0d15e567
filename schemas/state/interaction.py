"""Interaction modes: the purpose of a turn. They decide context budgets, never the embedder."""

from functools import partial
from operator import is_

from modestream_client.vocabulary import Confidence, InteractionMode
from pydantic import BaseModel, Field

INTERACTION_MODES: tuple[InteractionMode, ...] = ("TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL")


class Interaction(BaseModel, frozen=True):
    """An interaction mode with its confidence.

    `taxonomy` is the version of the modes' tables that decided it; None if it was given.
    """

    mode: InteractionMode
    confidence: Confidence
    taxonomy: str | None = Field(default=None, exclude_if=partial(is_, None))


class WeekTotals(BaseModel, frozen=True):
    """The numbers of users in a week: of all, by mode, and of those with a correction.

    `week` is the number of the week since 1 January of the year 1, a Monday; -1 is no week. A user with a correction
    but no classified turn is in `users` and in no mode.
    """

    week: int = -1
    users: int = 0
    modes: dict[InteractionMode, int] = Field(default_factory=dict)
    corrected: int = 0


class WeekSample(BaseModel, frozen=True):
    """The users of the latest week by the hashes of their names: `modes` by user, and users with a correction."""

    week: int = -1
    modes: dict[str, InteractionMode] = Field(default_factory=dict)
    corrected: tuple[str, ...] = ()


class InteractionCounts(BaseModel, frozen=True):
    """One partition's sample of its latest week, and the totals of the week before that one."""

    latest: WeekSample = WeekSample()
    before: WeekTotals = WeekTotals()
