"""A language model's answer on how one turn changes the user's intention."""

from typing import Annotated

from pydantic import BaseModel, Field

ShortText = Annotated[str, Field(max_length=512)]
"""A name or a phrase."""

MAX_ENTRIES = 64
"""Entries of any list in an answer: a model that gives more repeats itself."""


class IntentionUpdate(BaseModel, frozen=True):
    """What the turn changes in what its user is after."""

    goals: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    constraints: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    decisions: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    blocking_errors: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    resolved: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
