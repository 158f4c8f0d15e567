"""What each tool does: validated arguments in, the fields of its result out. All raise Refused."""

from collections.abc import Awaitable, Callable
from typing import Any

from modestream_client import operations as rows
from modestream_client.operations import Operation

from gateway.mcp.additions import add
from gateway.mcp.arguments import AddMemory, OneMemory, SetMemoryMode
from gateway.mcp.results import recalled_of, record_of, sentences_of, texts_of
from gateway.mcp.tool_request import ToolRequest
from gateway.service.service import MemoryService
from gateway.service.wire import Json

ToolCall = Callable[[MemoryService, ToolRequest, Any], Awaitable[Json]]

ALL_PROJECTS: Json = {}
"""The scope of calls about one memory: it is found in any project of the user."""


def _call_of(operation: Operation[Any], view: Callable[[Json], Json] = dict) -> ToolCall:
    """Return the call of a tool that is one operation, in the project that its arguments name, or the connection."""

    async def call(service: MemoryService, request: ToolRequest, asked: Any) -> Json:
        fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
        scope = request.scope(getattr(asked, "project_id", None))
        return view(await service.operations.run(operation, request.call, scope, fields))

    return call


def _found(answer: Json) -> Json:
    return {"memories": [recalled_of(hit) for hit in answer["hits"]], "warnings": sentences_of(answer["warnings"])}


def _page(answer: Json) -> Json:
    return {**answer, "memories": [recalled_of(item) for item in answer["items"]]}


def _context(answer: Json) -> Json:
    return {**answer, "tokens": answer["tokens"]["total"]}


search_memory = _call_of(rows.SEARCH_MEMORIES, _found)
list_memories = _call_of(rows.LIST_MEMORIES, _page)
assemble_context = _call_of(rows.ASSEMBLE_CONTEXT, _context)
list_modes = _call_of(rows.LIST_MODES)
declare_mode = _call_of(rows.DECLARE_MODE)
get_intention = _call_of(rows.GET_INTENTION, texts_of)
set_intention = _call_of(rows.SET_INTENTION, texts_of)
health = _call_of(rows.HEALTH)


async def add_memory(service: MemoryService, request: ToolRequest, asked: AddMemory) -> Json:
    """Store a statement."""
    return await add(service, request, asked)


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
