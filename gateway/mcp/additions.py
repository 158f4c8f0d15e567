"""Remember a statement: idempotent by its words, and found when it is answered, also after it was forgotten once."""

import hashlib
import itertools
import json

from gateway.mcp.arguments import AddMemory
from gateway.mcp.tool_request import ToolRequest
from gateway.service.service import MemoryService
from gateway.service.turns import FORGOTTEN, Turn, with_time
from gateway.service.wire import Json


async def add(service: MemoryService, request: ToolRequest, asked: AddMemory) -> Json:
    """Store a statement; return its turn's answer. Raises Refused.

    A program repeats a call without knowing whether the first was stored, so the turn's id comes from what was said.
    What was forgotten stays forgotten under its id: said again, it is a new turn with the next id.
    """
    scope = request.scope(asked.project_id)
    for times_forgotten in itertools.count():
        fields = with_time(_fields(asked) | {"turn_id": turn_id_of(asked, times_forgotten)})
        answer = (await service.turns.add(request.call, Turn(scope, fields))).body
        if all(warning["code"] != FORGOTTEN for warning in answer["warnings"]):
            return answer
    raise AssertionError("unreachable: the call's deadline ends the loop")


def turn_id_of(asked: AddMemory, times_forgotten: int = 0) -> str:
    """Return the id of a statement. Its mode and its place are no part of it.

    >>> turn_id_of(AddMemory(text="a")) == turn_id_of(AddMemory(text="a", speaker="Ana"))
    False
    """
    said = [asked.role, asked.speaker, asked.text, asked.occurred_at, times_forgotten]
    return "mcp-" + hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()


def _fields(asked: AddMemory) -> Json:
    named = {
        "conversation_id": asked.conversation_id,
        "role": asked.role,
        "speaker": asked.speaker,
        "content": asked.text,
        "occurred_at": asked.occurred_at,
        "mode": asked.mode,
    }
    return {name: value for name, value in named.items() if value is not None}
