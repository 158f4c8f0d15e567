"""`set_interaction_mode`: check the command, and request the change that corrects a memory's interaction mode."""

from datetime import datetime

from modestream_client.arguments import SetInteractionMode

from agents.ports.command_types import parse_arguments
from agents.ports.stores import Memories
from schemas.failures import Rejected
from schemas.internal.changes import Change
from schemas.messages.commands import Command


def request_correction(command: Command, memories: Memories, at: datetime) -> Change:
    """Return the change; it counts in the week of `at`.

    Raises Rejected: `invalid_value` for an unknown interaction mode and for an item, which has none; `not_found` for a
    memory that the scope does not have.
    """
    wanted = parse_arguments(SetInteractionMode, command)
    memory = memories.get(wanted.memory_id)
    if memory is None or memory.scope != command.scope.model_dump():
        raise Rejected("not_found", "this scope has no memory of that id", "arguments.memory_id")
    if memory.origin == "extracted":
        message = "an item has no interaction mode of its own: correct the turn that states it"
        raise Rejected("invalid_value", message, "arguments.memory_id")
    return Change(
        scope=command.scope,
        action="correct",
        memory_id=wanted.memory_id,
        interaction_mode=wanted.interaction_mode,
        at=at,
    )
