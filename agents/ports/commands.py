"""Commands and jobs: permissions, results of handlers, logs of runs and contexts."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from modestream_client.operations import COMMANDS
from modestream_client.runs import Run
from pydantic import BaseModel, ValidationError

from schemas.failures import Rejected
from schemas.internal.changes import Change, Job, JobProgress
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command
from schemas.messages.decoding import drop_nulls, to_rejected
from schemas.messages.published import LoggedContext, Rating
from schemas.scopes import Scope, Selector
from schemas.state.policies import Permission


class Jobs(Protocol):
    """Jobs of the boundaries that this worker serves."""

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        """Return the time of the last completed backfill by mode."""

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """Return the progress of running jobs."""

    def last(self, boundary: str) -> Sequence[StoredJob]:
        """Return the last jobs, running or ended, the oldest first."""

    def scheduled(self, boundary: str) -> Mapping[str, StoredJob]:
        """Return the last scheduled job of each kind, running or ended."""

    def find(self, boundary: str, job_id: str) -> StoredJob | None:
        """Return the job of that id, running or ended; None for an unknown one."""

    async def is_pending(self, kind: str, partition: int, offset: int) -> bool:
        """True if the request for a job of that kind is written there, in this partition, and not yet read."""


@dataclass(frozen=True, slots=True)
class ConsolidationRun:
    """One run: a trigger, and the turns of its partition before offset `until`, as of the time `at`.

    `has_ended` is true if its trigger is delivered again after its end: it changes nothing, and is answered again.
    """

    run: str
    trigger: ConsolidationTrigger
    partition: int
    until: int
    at: datetime
    has_ended: bool = False

    @property
    def scope(self) -> Mapping[str, str]:
        """The scope in the form of records."""
        return self.trigger.scope.model_dump()


class Allowance(Protocol):
    """The remaining budget of one run."""

    def is_over(self) -> bool:
        """True if its time is over."""

    def may_spend(self, tokens: int) -> bool:
        """True if the budget still allows this number of language model tokens."""

    def spend(self, tokens: int) -> None:
        """Subtract used tokens from the budget."""


class Unbounded:
    """An unlimited budget, for requests that a caller waits for."""

    def is_over(self) -> bool:
        return False

    def may_spend(self, tokens: int) -> bool:  # noqa: ARG002 - as the port has it
        return True

    def spend(self, tokens: int) -> None:
        """Do nothing."""


UNBOUNDED = Unbounded()


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first. `is_complete` is False if the log goes back further than was read."""

    runs: Sequence[Run]
    is_complete: bool = True


class RunLog(Protocol):
    """The log of a worker's partitions; reading is limited in records and in time, users in turn."""

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the newest admitted runs of a boundary that were written since a time, each once.

        Runs before a user was forgotten are left out. Raises Unavailable.
        """


class ContextLog(Protocol):
    """The memories that contexts and answers were based on."""

    async def find(self, partition: int, boundary: str, context_id: str) -> LoggedContext | None:
        """Return a context of a boundary; None if there never was one, or it has expired. Raises Unavailable."""


class NoContextLog:
    async def find(self, partition: int, boundary: str, context_id: str) -> LoggedContext | None:  # noqa: ARG002
        return None


class EmptyRunLog:
    async def newest(
        self,
        partition: int,  # noqa: ARG002
        boundary: str,  # noqa: ARG002
        admits: Callable[[Run], bool],  # noqa: ARG002
        limit: int,  # noqa: ARG002
        since_ms: int = 0,  # noqa: ARG002
    ) -> RunPage:
        return RunPage(())


class Authorizer(Protocol):
    """Decides what a principal may do. `principal` comes from the record's header; None if it has none."""

    def narrow(self, principal: str | None, selector: Selector) -> Selector:
        """Return the part of a selector that a principal may read. Raises Rejected `not_allowed` if it is empty."""

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

    `corrections` counts the memories that it moves to another mode, by the mode they are in; a `rating` is kept as an
    event.
    """

    result: ResultBody
    change: Change | None = None
    corrections: Mapping[str, int] = field(default_factory=dict)
    job: Job | None = None
    rating: Rating | None = None


CommandHandler = Callable[[Command, int], Coroutine[Any, Any, CommandResult]]
"""Handles the commands of one name; the second argument is the command's offset."""

BeforeForgetting = Callable[[Command, int], None]
"""Clears derived data of a project, or of all projects of a user, before the `forget` command is answered."""


MAX_NAMED_ARGUMENTS = 20
MAX_ARGUMENT_NAME_CHARS = 80
"""Maximum unknown arguments named in a warning, and characters of each: both come from the sender."""


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
