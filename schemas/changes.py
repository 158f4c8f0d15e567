"""`change.v1`: what a command changes in memories that are there. `govern` writes it, `remember` carries it out.

The record that carries it has the headers of the command, so that the command is answered when the change is done.
"""

from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from schemas.memories import CategoryAssignment
from schemas.scopes import Scope

EntryT = TypeVar("EntryT")


class Change(BaseModel):
    """Which memories of a boundary change, and how.

    The one of an id, or those in `mode`: of `project`, or where that is None of all projects but `except_projects`; or
    those of a conversation of the scope; or with `whole` those of the scope's project or of the boundary.
    `move` puts them into the mode `to`, `forget` removes them for good, `stale` has them embedded again, `assign` puts
    the items in `assigned` under other categories, each under those that stand with its id and no others. `result` is
    what the command is answered with, its `moved` or `forgotten` replaced by how many there were; None: the memory.

    `turns_before` is where the turns of the partition ended when the command came: those before it are applied before
    the change is made. Those from there on to `turns_until` were said after the command, and are not forgotten by it.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    schema_: Literal["change.v1"] = Field(default="change.v1", alias="schema")
    scope: Scope
    action: Literal["move", "forget", "stale", "assign"]
    memory_id: str | None = None
    mode: str | None = None
    project: str | None = None
    except_projects: tuple[str, ...] = ()
    conversation_id: str | None = None
    whole: Literal["project", "user"] | None = None
    turns_before: int | None = None
    turns_until: int | None = None
    to: str | None = None
    result: dict[str, Any] | None = None
    assigned: dict[str, tuple[CategoryAssignment, ...]] = Field(default_factory=dict)


MAX_ISSUED = 64
"""Changes and answers of a boundary that are kept, each: more than it has commands between two commits of what was
read."""


class IssuedCommands(BaseModel):
    """The last changes that commands of a boundary have asked for, each under the place of its command.

    A command that is delivered again, as the worker was killed before that was acknowledged, asks for the same change:
    what was said since is not its business. `answered` are those that declared something without such a change, with
    what they were answered: were one carried out again, it would bring back what was renamed or deleted since.
    """

    model_config = ConfigDict(frozen=True)

    changes: dict[str, Change] = Field(default_factory=dict)
    answered: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def with_change(self, place: str, change: Change) -> Self:
        """These and one more, without the oldest where they are too many."""
        return self.model_copy(update={"changes": _latest({**self.changes, place: change})})

    def with_answer(self, place: str, result: dict[str, Any]) -> Self:
        """These and one more answer, without the oldest where they are too many."""
        return self.model_copy(update={"answered": _latest({**self.answered, place: result})})


def _latest(kept: dict[str, EntryT]) -> dict[str, EntryT]:
    return dict(list(kept.items())[-MAX_ISSUED:])
