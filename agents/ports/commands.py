"""Commands: authorization, and the types of their handlers."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from modestream_client.operations import COMMANDS
from pydantic import BaseModel, ValidationError

from schemas.failures import Rejected
from schemas.internal.changes import Change, Job
from schemas.messages.commands import Command
from schemas.messages.contexts import Rating
from schemas.messages.decoding import drop_nulls, to_rejected
from schemas.scopes import Scope, Selector
from schemas.state.policies import Permission


class Authorizer(Protocol):
    """Decides what a principal may do. `principal` comes from the record's header; None if it has none."""

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        """Return the part of a selector that a principal may read. Raises Rejected `not_allowed` if that is none."""

    def permit(self, principal: str | None, act: Permission, scope: Scope) -> None:
        """Raise Rejected `not_allowed` if the principal may not do this in this scope."""

    def permit_operating(self, principal: str | None) -> None:
        """Raise Rejected `not_allowed` if the principal may not change how the deployment works."""

    def projects(self, principal: str | None, act: Permission, scope: Scope | Selector) -> tuple[str, ...] | None:
        """Return the projects of a scope's boundary in which the principal may do this; None for all."""


ResultBody = dict[str, Any]
ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command, and the change or job that must be carried out before it is answered.

    `corrections` counts the memories that it moves to another mode; a `rating` is kept as an event.
    """

    result: ResultBody
    change: Change | None = None
    corrections: int = 0
    job: Job | None = None
    rating: Rating | None = None


CommandHandler = Callable[[Command, int], Coroutine[Any, Any, CommandResult]]
"""Handles the commands of one name; the second argument is the command's offset."""

BeforeForgetting = Callable[[Command, int], None]
"""Clears derived data of a project, or of all projects of a user, before the `forget` command is answered."""


MAX_NAMED_ARGUMENTS = 20
MAX_ARGUMENT_NAME_CHARS = 80
"""Unknown arguments that a warning names, and characters of each name: both come from the sender."""


def unknown_arguments(command: Command) -> tuple[str, ...]:
    """Return the arguments that a command does not have, the first of them, long names cut."""
    operation = COMMANDS.get(command.command)
    known = {} if operation is None or operation.arguments is None else operation.arguments.model_fields
    unknown = [name[:MAX_ARGUMENT_NAME_CHARS] for name in command.arguments if name not in known]
    return tuple(unknown[:MAX_NAMED_ARGUMENTS])


def parse_arguments(model: type[ArgumentsT], command: Command) -> ArgumentsT:
    """Parse the arguments of a command. Raises Rejected with the invalid field."""
    arguments = dict(command.arguments)
    try:
        return model.model_validate(arguments)
    except ValidationError as problem:
        drop_nulls(arguments, problem)
    try:
        return model.model_validate(arguments)
    except ValidationError as problem:
        error = to_rejected(problem, model)
        raise Rejected(error.code, error.message, ".".join(filter(None, ("arguments", error.field)))) from None
