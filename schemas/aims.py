"""What a language model says that one turn changes in what its user is after."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Short = Annotated[str, Field(max_length=512)]
"""A name or a phrase; what is longer is not one."""

MOST = 64
"""Entries of any list in an answer: what has more repeats itself."""


class IntentionUpdate(BaseModel):
    """What the turn changes in what its user is after."""

    model_config = ConfigDict(frozen=True)

    goals: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
    constraints: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
    decisions: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
    blocking_errors: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
    resolved: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
