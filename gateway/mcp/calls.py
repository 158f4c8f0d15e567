"""The implementation of each tool: a request with its user and validated arguments in, the fields of its result out.

All raise Refused.
"""

import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from mcp.server.context import ServerRequestContext
from modestream_client import operations as rows
from modestream_client.operations import Operation

from gateway.mcp.models import AddMemory, AskMemory, OneMemory, SetMemoryMode, recalled_of, record_of, texts_of
from gateway.service.access import DEFAULT_PROJECT, PROJECT
from gateway.service.calls import Call, Json
from gateway.service.service import MemoryService
from gateway.service.turns import FORGOTTEN, Turn, with_time
from schemas.scopes import ANY_VALUE

MAX_ANSWER_WAIT_S = 60.0
"""Seconds of an answer of the language model."""


def unlimited() -> None:
    """No limits: on stdio the only caller is the program that started this process."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One request's call and project. The connection decides both: no argument of a tool names a user."""

    call: Call
    project: str = DEFAULT_PROJECT
    count_write: Callable[[], None] = unlimited
    """Called before a tool writes. Raises Refused, `too_many_requests`."""
    wait_for_model: Callable[[], None] = unlimited
    """Called before a tool waits for a language model. Raises Refused."""

    def scope(self, project: str | None = None) -> Json:
        """Return the scope without its user."""
        return {PROJECT: project or self.project}


RequestOf = Callable[[ServerRequestContext[Any, Any]], ToolRequest]
"""Returns the call and the project of a request. Raises Refused."""


def turn_id_of(asked: AddMemory, times_forgotten: int = 0) -> str:
    """Return the id of a statement, whatever its mode, project and conversation.

    >>> turn_id_of(AddMemory(text="a")) == turn_id_of(AddMemory(text="a", speaker="Ana"))
    False
    """
    statement = [asked.role, asked.speaker, asked.text, asked.occurred_at, times_forgotten]
    return "mcp-" + hashlib.sha256(json.dumps(statement, ensure_ascii=False).encode()).hexdigest()


ToolCall = Callable[[MemoryService, ToolRequest, Any], Awaitable[Json]]

ALL_PROJECTS: Json = {}
"""The scope of calls about one memory: it is found in any project of the user."""


def _call_of(operation: Operation[Any], view: Callable[[Json], Json] = dict) -> ToolCall:
    """Return the call of a single-operation tool, in the project of its arguments, else of the connection."""

    async def call(service: MemoryService, request: ToolRequest, asked: Any) -> Json:
        fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
        scope = request.scope(getattr(asked, "project_id", None))
        return view(await service.operations.run(operation, request.call, scope, fields))

    return call


def _hits(answer: Json) -> Json:
    warnings = [f"{warning['code']}: {warning['message']}" for warning in answer["warnings"]]
    return {"memories": [recalled_of(hit) for hit in answer["hits"]], "warnings": warnings or None}


search_memory = _call_of(rows.SEARCH_MEMORIES, _hits)
list_memories = _call_of(
    rows.LIST_MEMORIES, lambda page: {**page, "memories": [recalled_of(item) for item in page["items"]]}
)
assemble_context = _call_of(
    replace(rows.ASSEMBLE_CONTEXT, fixed={"append_query": True}),
    lambda context: {**context, "tokens": context["tokens"]["total"]},
)
list_modes = _call_of(rows.LIST_MODES)
declare_mode = _call_of(rows.DECLARE_MODE)
get_intention = _call_of(rows.GET_INTENTION, texts_of)
set_intention = _call_of(rows.SET_INTENTION, texts_of)
health = _call_of(rows.HEALTH)
rate_memories = _call_of(rows.RATE)


async def add_memory(service: MemoryService, request: ToolRequest, asked: AddMemory) -> Json:
    """Store a statement; return its turn's answer.

    A program repeats a call without knowing whether the first was stored, so the turn's id comes from the statement. A
    forgotten statement stays forgotten under its id: said again, it is a new turn with the next id.
    """
    fields = asked.model_dump(exclude={"project_id", "text"}, exclude_none=True) | {"content": asked.text}
    turn = Turn(request.scope(asked.project_id), fields)
    for times_forgotten in itertools.count():
        identified = with_time(fields | {"turn_id": turn_id_of(asked, times_forgotten)})
        answer = (await service.turns.add(request.call, turn._replace(fields=identified))).body
        if all(warning["code"] != FORGOTTEN for warning in answer["warnings"]):
            return answer
    raise AssertionError("unreachable: the call's deadline ends the loop")


async def ask_memory(service: MemoryService, request: ToolRequest, asked: AskMemory) -> Json:
    """Have the language model answer; the exchange is stored in one conversation of one project."""
    request.wait_for_model()
    scope = request.scope(asked.project_id)
    stores = asked.conversation_id is not None and scope[PROJECT] != ANY_VALUE
    fields = asked.model_dump(exclude={"project_id"}, exclude_none=True) | {"store": stores}
    call = request.call
    patient = Call.within(call.caller, call.user_id, MAX_ANSWER_WAIT_S, call.request_id)
    return await service.operations.answer(patient, scope, fields)


async def get_memory(service: MemoryService, request: ToolRequest, asked: OneMemory) -> Json:
    """Show one memory."""
    return record_of(await service.memories.get(request.call, ALL_PROJECTS, asked.memory_id))


async def delete_memory(service: MemoryService, request: ToolRequest, asked: OneMemory) -> Json:
    """Forget one memory."""
    return await service.memories.forget(request.call, ALL_PROJECTS, asked.memory_id)


async def set_memory_mode(service: MemoryService, request: ToolRequest, asked: SetMemoryMode) -> Json:
    """Move one memory."""
    mode = {"mode": asked.mode}
    return recalled_of(
        await service.memories.change(rows.SET_MEMORY_MODE, request.call, ALL_PROJECTS, asked.memory_id, mode)
    )
