"""What every command is: arguments in, a result out, or what must be done before it is answered."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from schemas.changes import Change
from schemas.commands import Command
from schemas.decoding import drop_nulls, to_rejected
from schemas.failures import Rejected
from schemas.jobs import Job

ResultBody = dict[str, Any]
ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command, or the change that must be made or the job that must be done before it is answered."""

    result: ResultBody
    change: Change | None = None
    is_correction: bool = False
    job: Job | None = None


CommandHandler = Callable[[Command, int], Coroutine[Any, Any, CommandResult]]
"""Handles a command of this name; the second argument is its offset."""

BeforeForgetting = Callable[[Command, int], None]
"""Takes away what a user has set in a project, or in all of his, before the command that forgets it is answered."""


def parse_arguments(model: type[ArgumentsT], command: Command) -> ArgumentsT:
    """The arguments of a command. Raises Rejected with the field that is not as it must be."""
    given = dict(command.arguments)
    try:
        return model.model_validate(given)
    except ValidationError as problem:
        drop_nulls(given, problem)
    try:
        return model.model_validate(given)
    except ValidationError as problem:
        error = to_rejected(problem)
        raise Rejected(error.code, error.message, ".".join(filter(None, ("arguments", error.field)))) from None
