"""Dispatches a command to its handler by name."""

from collections.abc import Mapping

from agents.ports.command_types import CommandHandler, CommandResult
from schemas.failures import Rejected
from schemas.messages.commands import Command

MAX_SHOWN_COMMAND_CHARS = 80
"""Characters of an unknown name that its error repeats."""


class DispatchCommands:
    """Commands in, the results of their handlers out."""

    def __init__(self, handlers: Mapping[str, CommandHandler]) -> None:
        """Take the handlers by the names of their commands."""
        self._handlers = handlers

    async def handle(self, command: Command, offset: int) -> CommandResult:
        """Run the handler. Raises Rejected `unknown_command`, or what the handler raises."""
        handler = self._handlers.get(command.command)
        if handler is None:
            names = ", ".join(sorted(self._handlers))
            message = f"{command.command[:MAX_SHOWN_COMMAND_CHARS]!r} is not a command here; commands are: {names}"
            raise Rejected("unknown_command", message, "command")
        return await handler(command, offset)
