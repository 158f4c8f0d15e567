"""`change.v1`: a command's change to existing memories. The commands agent writes it, `Remember` applies it.

Its record carries the headers of the command, so that the command is answered when the change is done.
"""

from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field

from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment

EntryT = TypeVar("EntryT")


class Change(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """Which memories of a boundary change, and how.

    Selected is the memory of an id; or those in `mode`, of `project` or, if that is None, of all projects except
    `except_projects`; or those of a conversation of the scope; or with `whole` those of the scope's project or of the
    boundary. `move` moves them to the mode `to`, `forget` deletes them, `stale` has them embedded again, `assign`
    replaces the categories of the items in `assigned`, by memory id. `result` is the command's result, its `moved` or
    `forgotten` replaced by the number of memories; None: the result is the memory.

    `turns_before` is the end offset of the partition's turns when the command arrived: earlier turns are applied before
    the change. Turns from there up to `turns_until` were published after the command, which does not forget them.
    """

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
"""Changes, and answers, stored per boundary: more than it has commands between two offset commits."""


class IssuedCommands(BaseModel, frozen=True):
    """The last commands of a boundary, by partition and offset of their records, for redelivery after a crash.

    `changes` are the changes that commands issued: a redelivered command issues the same one, whatever was said since.
    `answered` are the results of commands without a change: carried out twice, a declaration would restore what was
    renamed or deleted since.
    """

    changes: dict[str, Change] = Field(default_factory=dict)
    answered: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def with_change(self, position: str, change: Change) -> Self:
        """Add a change; drop the oldest beyond `MAX_ISSUED`."""
        return self.model_copy(update={"changes": _latest({**self.changes, position: change})})

    def with_answer(self, position: str, result: dict[str, Any]) -> Self:
        """Add a result; drop the oldest beyond `MAX_ISSUED`."""
        return self.model_copy(update={"answered": _latest({**self.answered, position: result})})


def _latest(entries: dict[str, EntryT]) -> dict[str, EntryT]:
    return dict(list(entries.items())[-MAX_ISSUED:])
