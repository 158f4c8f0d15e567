"""The command `set_memory_visibility`: check it, and request its change."""

from collections.abc import Sequence
from typing import Any

from modestream_client.arguments import SetMemoryVisibility

from schemas.failures import Rejected
from schemas.internal.changes import Change
from schemas.messages.commands import Command
from schemas.state.memories import Memory


def request_visibility(
    command: Command, wanted: SetMemoryVisibility, memories: Sequence[Memory]
) -> tuple[dict[str, Any], Change]:
    """Return the result and the change of these memories, which the command names.

    Raises Rejected, `invalid_value`, without a flag, and for an item, which has the visibility of its turns.
    """
    argument = "memory_id" if wanted.memory_ids is None else "memory_ids"
    if wanted.searchable is None and wanted.private is None:
        raise Rejected("invalid_value", "give searchable, private, or both", "arguments.searchable")
    if item := next((one for one in memories if one.origin == "extracted"), None):
        message = (
            f"{item.memory_id} is an item and has the visibility of its turns: set that of the turns in its evidence"
        )
        raise Rejected("invalid_value", message, f"arguments.{argument}")
    result: dict[str, Any] | None = None if wanted.memory_ids is None else {"changed": 0}
    change = Change(
        scope=command.scope,
        action="filter",
        memory_id=wanted.memory_id,
        memory_ids=() if wanted.memory_ids is None else tuple(one.memory_id for one in memories),
        searchable=wanted.searchable,
        private=wanted.private,
        result=result,
    )
    return result or {}, change
