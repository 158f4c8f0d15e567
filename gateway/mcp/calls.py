"""What each tool does: validated arguments in, the fields of its result out. All raise Refused."""

from modestream_client.operations import (
    ASSEMBLE_CONTEXT,
    DECLARE_MODE,
    GET_INTENTION,
    HEALTH,
    LIST_MEMORIES,
    LIST_MODES,
    SEARCH_MEMORIES,
    SET_INTENTION,
)

from gateway.mcp import arguments as asked_
from gateway.mcp.additions import add
from gateway.mcp.results import recalled_of, record_of, sentences_of, texts_of
from gateway.mcp.tool_request import ToolRequest
from gateway.service.service import MemoryService
from gateway.service.wire import Json

ALL_PROJECTS: Json = {}
"""The scope of calls about one memory: it is found in any project of the user."""


async def search_memory(service: MemoryService, request: ToolRequest, asked: asked_.SearchMemory) -> Json:
    """Search with the fields of `retrieve.v1`."""
    fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
    found = await service.operations.run(SEARCH_MEMORIES, request.call, request.scope(asked.project_id), fields)
    return {"memories": [recalled_of(hit) for hit in found["hits"]], "warnings": sentences_of(found["warnings"])}


async def add_memory(service: MemoryService, request: ToolRequest, asked: asked_.AddMemory) -> Json:
    """Store a statement."""
    return await add(service, request, asked)


async def list_memories(service: MemoryService, request: ToolRequest, asked: asked_.ListMemories) -> Json:
    """List with the fields of `list.v1`."""
    fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
    page = await service.operations.run(LIST_MEMORIES, request.call, request.scope(asked.project_id), fields)
    return {**page, "memories": [recalled_of(one) for one in page["items"]]}


async def get_memory(service: MemoryService, request: ToolRequest, asked: asked_.OneMemory) -> Json:
    """Show one memory."""
    return record_of(await service.memories.get(request.call, ALL_PROJECTS, asked.memory_id))


async def delete_memory(service: MemoryService, request: ToolRequest, asked: asked_.OneMemory) -> Json:
    """Forget one memory."""
    return await service.memories.forget(request.call, ALL_PROJECTS, asked.memory_id)


async def list_modes(service: MemoryService, request: ToolRequest, _: asked_.NoArguments) -> Json:
    """List the modes, with the default of the connection's project."""
    return await service.operations.run(LIST_MODES, request.call, request.scope())


async def set_memory_mode(service: MemoryService, request: ToolRequest, asked: asked_.SetMemoryMode) -> Json:
    """Move one memory."""
    return recalled_of(await service.memories.move(request.call, ALL_PROJECTS, asked.memory_id, asked.mode))


async def assemble_context(service: MemoryService, request: ToolRequest, asked: asked_.AssembleContext) -> Json:
    """Assemble with the fields of `assemble.v1`."""
    fields = asked.model_dump(exclude_none=True)
    context = await service.operations.run(ASSEMBLE_CONTEXT, request.call, request.scope(), fields)
    return {**context, "tokens": context["tokens"]["total"]}


async def declare_mode(service: MemoryService, request: ToolRequest, asked: asked_.DeclareMode) -> Json:
    """Declare a mode, or update it."""
    fields = asked.model_dump(exclude_none=True)
    return await service.operations.run(DECLARE_MODE, request.call, request.scope(), fields)


async def get_intention(service: MemoryService, request: ToolRequest, _: asked_.NoArguments) -> Json:
    """Show the intention of the connection's project."""
    return texts_of(await service.operations.run(GET_INTENTION, request.call, request.scope()))


async def set_intention(service: MemoryService, request: ToolRequest, asked: asked_.SetIntention) -> Json:
    """Set goals, constraints, or both."""
    fields = asked.model_dump(exclude_none=True)
    return texts_of(await service.operations.run(SET_INTENTION, request.call, request.scope(), fields))


async def health(service: MemoryService, request: ToolRequest, _: asked_.NoArguments) -> Json:
    """Show the state of the user's vectors and of the deployment."""
    return await service.operations.run(HEALTH, request.call, request.scope())
