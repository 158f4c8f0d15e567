"""What each tool does: validated arguments in, the fields of its result out. All raise Refused."""

from gateway.mcp import arguments as asked_
from gateway.mcp.additions import add
from gateway.mcp.place import Place
from gateway.mcp.results import recalled_of, record_of, sentences_of, texts_of
from gateway.service.service import MemoryService
from gateway.service.wire import Json

ALL_PROJECTS: Json = {}
"""The scope of calls about one memory: it is found in any project of the user."""


async def search_memory(service: MemoryService, place: Place, asked: asked_.SearchMemory) -> Json:
    """Search with the fields of `retrieve.v1`."""
    fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
    found = await service.reads.search(place.call, place.scope(asked.project_id), fields)
    return {"memories": [recalled_of(hit) for hit in found["hits"]], "warnings": sentences_of(found["warnings"])}


async def add_memory(service: MemoryService, place: Place, asked: asked_.AddMemory) -> Json:
    """Store a statement."""
    return await add(service, place, asked)


async def list_memories(service: MemoryService, place: Place, asked: asked_.ListMemories) -> Json:
    """List with the fields of `list.v1`."""
    fields = asked.model_dump(exclude={"project_id"}, exclude_none=True)
    page = await service.reads.list(place.call, "memories", place.scope(asked.project_id), fields)
    return {**page, "memories": [recalled_of(one) for one in page["items"]]}


async def get_memory(service: MemoryService, place: Place, asked: asked_.OneMemory) -> Json:
    """Show one memory."""
    return record_of(await service.memories.get(place.call, ALL_PROJECTS, asked.memory_id))


async def delete_memory(service: MemoryService, place: Place, asked: asked_.OneMemory) -> Json:
    """Forget one memory."""
    return await service.memories.forget(place.call, ALL_PROJECTS, asked.memory_id)


async def list_modes(service: MemoryService, place: Place, _: asked_.NoArguments) -> Json:
    """List the modes, with the default of the connection's project."""
    return await service.modes.list(place.call, place.scope())


async def set_memory_mode(service: MemoryService, place: Place, asked: asked_.SetMemoryMode) -> Json:
    """Move one memory."""
    return recalled_of(await service.memories.move(place.call, ALL_PROJECTS, asked.memory_id, asked.mode))


async def assemble_context(service: MemoryService, place: Place, asked: asked_.AssembleContext) -> Json:
    """Assemble with the fields of `assemble.v1`."""
    fields = asked.model_dump(exclude_none=True)
    context = await service.reads.assemble(place.call, place.scope(), fields)
    return {**context, "tokens": context["tokens"]["total"]}


async def declare_mode(service: MemoryService, place: Place, asked: asked_.DeclareMode) -> Json:
    """Declare a mode, or update it."""
    fields = asked.model_dump(exclude={"name"}, exclude_none=True)
    return await service.modes.declare(place.call, place.scope(), asked.name, fields)


async def get_intention(service: MemoryService, place: Place, _: asked_.NoArguments) -> Json:
    """Show the intention of the connection's project."""
    return texts_of(await service.layers.get_intention(place.call, place.scope()))


async def set_intention(service: MemoryService, place: Place, asked: asked_.SetIntention) -> Json:
    """Set goals, constraints, or both."""
    fields = asked.model_dump(exclude_none=True)
    return texts_of(await service.layers.set_intention(place.call, place.scope(), fields))


async def health(service: MemoryService, place: Place, _: asked_.NoArguments) -> Json:
    """Show the state of the user's vectors and of the deployment."""
    return await service.layers.health(place.call, place.scope())
