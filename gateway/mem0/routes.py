"""The routes under `/mem0`: those of mem0's server, and those that its client library requests.

Guaranteed: hosts, callers and limits of the gateway apply here too; a user is one that the key may use, and a memory's
id is looked up only among that user's memories; each path is served with and without a trailing slash. An unknown field
is an error: nothing is ignored silently.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from gateway.http.calls import PathName, caller_of, wait_of
from gateway.http.limits import CHARGE_WRITES
from gateway.http.problems import request_id_of
from gateway.http.shapes import BodyReader, QueryReader, Shapes
from gateway.mem0.calls import ANY_PROJECT, IdMapping, Ids, Mem0Calls, history_of, ids_of, memory_of, parted_id
from gateway.service.access import require_user
from gateway.service.calls import Call, Json, Refused
from gateway.service.service import MemoryService
from schemas.messages.retrieval import MAX_PAGE_ITEMS, MAX_QUERY_LENGTH
from schemas.scopes import Scope
from schemas.state.policies import Permission

DEFAULT_TOP_K = 10
"""Hits of a search without `top_k` (docs/contract.md)."""

MAX_MESSAGES = 100
"""Maximum messages of one request, as turns of one request (docs/contract.md)."""

DEFAULT_PAGE_ITEMS = 100
"""Memories of a list without `top_k`, as in mem0's server."""

MAX_PAGE = 1000
"""The highest number of a page: each is read through those before it."""

Filters = Annotated[
    dict[str, Any],
    Field(description="`user_id`, `agent_id`, `run_id`, and single values of metadata, also within `AND`."),
]

IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]

Endpoint = Callable[..., Awaitable[JSONResponse]]


class Mem0Ids(BaseModel):
    """The ids of a request. Without `user_id` it is the key's own user."""

    model_config = ConfigDict(extra="forbid", strict=True)

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None


class Mem0Message(BaseModel):
    """One message: it becomes one turn, unchanged. `name` is its speaker."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: str
    content: str
    name: str | None = None


class Mem0Add(Mem0Ids):
    """Messages to store. `infer`, `version`, `output_format` and `async_mode` have no effect."""

    messages: Annotated[list[Mem0Message], Field(min_length=1, max_length=MAX_MESSAGES)]
    metadata: dict[str, Any] | None = None
    filters: Filters | None = None
    timestamp: Annotated[int, Field(ge=0, le=253_402_300_799, description="Seconds since 1970.")] | None = None
    infer: bool | None = None
    version: str | None = None
    output_format: str | None = None
    async_mode: bool | None = None


class Mem0Search(Mem0Ids):
    """A question. `limit` is an older name of `top_k`.

    `rerank`, `keyword_search`, `version` and `output_format` have no effect: every search is ranked, by words too.
    """

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    filters: Filters | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    rerank: bool | None = None
    keyword_search: bool | None = None
    version: str | None = None
    output_format: str | None = None


class Mem0Update(BaseModel):
    """The new text; `data` is its older name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str | None = None
    data: str | None = None


class Mem0Filter(Mem0Ids):
    """Filters of a list."""

    filters: Filters | None = None


class Mem0ListQuery(Mem0Ids):
    """Filters and size of a list."""

    top_k: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = DEFAULT_PAGE_ITEMS


class Mem0PageQuery(Mem0Ids):
    """A page by its number."""

    page: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = DEFAULT_PAGE_ITEMS


BODIES: Sequence[type[BaseModel]] = (Mem0Add, Mem0Filter, Mem0Search, Mem0Update)


def mem0_routes(service: MemoryService, scope: type[Scope] = Scope) -> APIRouter:
    id_mapping = IdMapping(scope)
    calls = Mem0Calls(service, Shapes(scope), id_mapping)
    router = APIRouter(prefix="/mem0", tags=["mem0"])
    _add_lists(router, calls)
    _add_memories(router, service, id_mapping)

    async def ping(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "org_id": "default", "project_id": "default", "user_email": None})

    _serve(router, "GET", ("/v1/ping",), ping, "mem0_ping", "The key is valid")
    return router


def _add_lists(router: APIRouter, calls: Mem0Calls) -> None:
    body, search = BodyReader(Mem0Add, frozenset()), BodyReader(Mem0Search, frozenset())
    filters = BodyReader(Mem0Filter, frozenset(), is_optional=True)
    query, pages, owner = (QueryReader(model, frozenset()) for model in (Mem0ListQuery, Mem0PageQuery, Mem0Ids))

    async def add(request: Request, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        fields = (await body.read(request)).fields
        ids = ids_of(owner.read(request).fields, fields)
        call = _call(request, ids, "write")
        request.scope[CHARGE_WRITES](len(fields["messages"]) - 1)
        results = await calls.add(call, ids, fields, idempotency_key)
        return JSONResponse({"results": results})

    async def list_all(request: Request) -> JSONResponse:
        fields = {"top_k": Mem0ListQuery().top_k, **query.read(request).fields}
        ids = ids_of(fields)
        page = await calls.list_page(_call(request, ids, "read"), ids, fields["top_k"])
        return JSONResponse({"results": page["items"]})

    async def list_pages(request: Request) -> JSONResponse:
        asked = pages.read(request).fields
        page = Mem0PageQuery(**asked)
        ids = ids_of(asked, (await filters.read(request)).fields, by_metadata=True)
        listed = await calls.list_page(_call(request, ids, "read"), ids, page.page_size, page.page)

        def address(number: int) -> str:
            return str(request.url.include_query_params(page=number, page_size=page.page_size))

        following = None if listed["next"] is None else address(page.page + 1)
        previous = address(page.page - 1) if page.page > 1 else None
        answer = {"count": listed["total"], "next": following, "previous": previous, "results": listed["items"]}
        return JSONResponse(answer)

    async def find(request: Request) -> JSONResponse:
        fields = (await search.read(request)).fields
        ids = ids_of(owner.read(request).fields, fields, by_metadata=True)
        top_k = fields.get("top_k") or fields.get("limit") or DEFAULT_TOP_K
        threshold = fields.get("threshold") or 0.0
        hits = await calls.search(_call(request, ids, "read"), ids, fields["query"], top_k, threshold)
        return JSONResponse({"results": hits})

    async def delete_all(request: Request) -> JSONResponse:
        ids = ids_of(owner.read(request).fields)
        if ids.user_id is None:
            raise Refused("invalid_value", "to forget many memories, give `user_id`", "user_id")
        await calls.forget_all(_call(request, ids, "manage"), ids)
        return JSONResponse({"message": "All relevant memories deleted"})

    both = ("/memories", "/v1/memories")
    _serve(router, "POST", (*both, "/v3/memories/add"), add, "mem0_add", "Store messages", body.openapi())
    _serve(router, "GET", both, list_all, "mem0_list", "List memories, newest first", query.openapi())
    paged = {**filters.openapi(), **pages.openapi()}
    _serve(router, "POST", ("/v3/memories", "/v2/memories"), list_pages, "mem0_pages", "List a page", paged)
    searches = ("/search", "/v1/memories/search", "/v2/memories/search", "/v3/memories/search")
    _serve(router, "POST", searches, find, "mem0_search", "Search memories", search.openapi())
    _serve(router, "DELETE", both, delete_all, "mem0_delete_all", "Forget a user, agent or run", owner.openapi())


def _add_memories(router: APIRouter, service: MemoryService, id_mapping: IdMapping) -> None:
    update = BodyReader(Mem0Update, frozenset())
    query = QueryReader(Mem0Ids, frozenset())

    def call_of(request: Request, named: str, permission: Permission) -> tuple[Call, str]:
        """Return the call about a memory, and its id: its user is the request's, the id's, or the key's own."""
        ids, (memory_id, user) = ids_of(query.read(request).fields), parted_id(named)
        if user is not None and ids.user_id not in (None, user):
            raise Refused("not_found", "this user has no memory of that id", "memory_id")
        return _call(request, ids if user is None else ids._replace(user_id=user), permission), memory_id

    async def get(request: Request, memory_id: PathName) -> JSONResponse:
        call, memory_id = call_of(request, memory_id, "read")
        return JSONResponse(memory_of(id_mapping, call, await service.memories.get(call, ANY_PROJECT, memory_id)))

    async def history(request: Request, memory_id: PathName) -> JSONResponse:
        call, memory_id = call_of(request, memory_id, "read")
        return JSONResponse(history_of(call, await service.memories.get(call, ANY_PROJECT, memory_id)))

    async def edit(request: Request, memory_id: PathName) -> JSONResponse:
        call, memory_id = call_of(request, memory_id, "write")
        fields = (await update.read(request)).fields
        texts = [fields[name] for name in ("text", "data") if fields.get(name) is not None]
        if len(texts) != 1 or not texts[0]:
            raise Refused("invalid_value", "give the new text as `text`", "text")
        memory = await service.memories.edit(call, ANY_PROJECT, memory_id, str(texts[0]))
        return JSONResponse({"message": "Memory updated successfully!", **memory_of(id_mapping, call, memory)})

    async def delete(request: Request, memory_id: PathName) -> JSONResponse:
        call, memory_id = call_of(request, memory_id, "manage")
        done = await service.memories.forget(call, ANY_PROJECT, memory_id)
        if not done["forgotten"]:
            raise Refused("not_found", "this user has no memory of that id", "memory_id")
        return JSONResponse({"message": "Memory deleted successfully!"})

    both = ("/memories/{memory_id}", "/v1/memories/{memory_id}")
    _serve(router, "GET", both, get, "mem0_get", "Show a memory", query.openapi())
    document = {**update.openapi(), **query.openapi()}
    _serve(router, "PUT", both, edit, "mem0_update", "Edit the text of a memory", document)
    _serve(router, "DELETE", both, delete, "mem0_delete", "Forget a memory", query.openapi())
    versions = tuple(f"{path}/history" for path in both)
    _serve(router, "GET", versions, history, "mem0_history", "Show the versions of a memory", query.openapi())


def _serve(
    router: APIRouter,
    method: str,
    paths: Sequence[str],
    endpoint: Endpoint,
    name: str,
    summary: str,
    document: Json | None = None,
) -> None:
    """Serve an endpoint at several paths; the document shows the first."""
    for path in (f"{path}{slash}" for path in paths for slash in ("", "/")):
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            operation_id=name,
            summary=summary,
            openapi_extra=document,
            include_in_schema=path == paths[0],
        )


def _call(request: Request, ids: Ids, permission: Permission) -> Call:
    """Return the call about the named user, or the key's own. Raises Refused."""
    caller = caller_of(request)
    user = ids.user_id or caller.own_user
    if user is None:
        raise Refused("invalid_value", "give `user_id`: this key has no user", "user_id")
    require_user(caller, user, permission)
    return Call.within(caller, user, wait_of(request.headers.get("prefer")), request_id_of(request))
