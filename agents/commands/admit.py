"""Admit valid requests, and dispatch commands by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modestream_client.operations import COMMANDS, OPERATING_COMMANDS

from agents.ports.commands import Authorizer, CommandHandler, CommandResult
from agents.rules.access.grants import RequestLimits, require_operator
from schemas.failures import Rejected
from schemas.messages.assemble import AnswerRequest
from schemas.messages.commands import Command
from schemas.state.policies import Permission


class Admit:
    """Requests in, permitted and narrowed requests out."""

    def __init__(self, authorizer: Authorizer | None = None, limits: RequestLimits | None = None) -> None:
        """Without an `authorizer`, all requests are permitted except operators' commands."""
        self._authorizer = authorizer
        self._limits = limits or RequestLimits()

    def admit(self, message: Any, act: Permission, principal: str | None) -> Any:
        """Return the message with its selector narrowed to what the principal may read.

        A command that only reads needs no more than `read`, whatever `act` its topic asks for. Raises Rejected:
        `not_allowed`, or the code of a limit.
        """
        if isinstance(message, Command):
            # Its handler refuses what reaches further: only the handler knows which modes are those of one
            # project.
            command = message
            command = command.by(principal)
            if command.command in OPERATING_COMMANDS:
                if self._authorizer is None:
                    require_operator(principal)
                else:
                    self._authorizer.permit_operating(principal)
                return command
            if self._authorizer is None:
                return command
            row = COMMANDS.get(command.command)
            needed: Permission = "manage" if row is None else row.permission
            self._authorizer.permit(principal, needed, command.scope)
            return command.limited_to(self._authorizer.projects(principal, needed, command.scope))
        if act == "read":
            self._limits.check(message)
        if self._authorizer is None:
            return message
        if act != "read":
            self._authorizer.permit(principal, act, message.scope)
            return message
        if isinstance(message, AnswerRequest) and message.store:
            written = self._authorizer.projects(principal, "write", message.scope)
            if written is not None and not (written and set(message.scope.project_id or ()) <= set(written)):
                reason = "question and answer become turns, which you may not write here: set `store` to false"
                raise Rejected("not_allowed", reason, "store")
        return message.model_copy(update={"scope": self._authorizer.narrow(principal, message.scope)})


MAX_SHOWN_COMMAND_CHARS = 80
"""Maximum characters of an unknown name to repeat in its error."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DispatchCommands:
    """Commands in, the results of their handlers out.

    `handlers` are by the names of their commands.
    """

    handlers: Mapping[str, CommandHandler]

    async def handle(self, command: Command, offset: int) -> CommandResult:
        """Run the handler. Raises Rejected `unknown_command`, or the handler's error."""
        handler = self.handlers.get(command.command)
        if handler is None:
            names = ", ".join(sorted(self.handlers))
            message = f"{command.command[:MAX_SHOWN_COMMAND_CHARS]!r} is not a command here; commands are: {names}"
            raise Rejected("unknown_command", message, "command")
        return await handler(command, offset)
