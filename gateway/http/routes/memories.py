"""`POST …/turns`: one turn, or up to 100 in order. One memory, and forgetting many."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse
from modestream_client.hits import WholeMemory
from modestream_client.operations import SET_INTERACTION_MODE, SET_MEMORY_MODE, SET_MEMORY_VISIBILITY, Operation
from pydantic_core import to_json

from gateway.http.calls import ManageCall, PathName, ReadCall, WriteCall
from gateway.http.limits import CHARGE_WRITES
from gateway.http.shapes import BodyReader, Shapes, parsed
from gateway.service.calls import Json, Refused
from gateway.service.service import MemoryService
from gateway.service.turns import Turn, idempotent_turn_id, with_time
from schemas.messages.decoding import parse_object

MAX_TURNS = 100
"""Turns of one request (docs/contract.md)."""

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="For turns without a `turn_id`: the same key with the same body is one turn.",
    ),
]


def turn_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that write turns."""
    router = APIRouter(tags=["turns"])
    single: Json = {"$ref": f"#/components/schemas/{shapes.turn.shape.__name__}"}
    items = {"type": "array", "items": single, "minItems": 1, "maxItems": MAX_TURNS}
    many = {"type": "object", "properties": {"turns": items}, "required": ["turns"], "additionalProperties": False}
    content = {"application/json": {"schema": {"anyOf": [single, many]}}}

    @router.post(
        "/v1/users/{user_id}/turns",
        operation_id="add_turns",
        summary="Remember one turn, or several in order",
        status_code=201,
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )
    async def add_turns(request: Request, call: WriteCall, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        turns = await parsed(await request.body(), partial(_turns, shapes.turn, idempotency_key))
        if isinstance(turns, Turn):
            stored = await service.turns.add(call, turns)
        else:
            # The request itself counted as the first write.
            request.scope[CHARGE_WRITES](len(turns) - 1)
            stored = await service.turns.add_all(call, turns)
        headers = {"X-Read-After": stored.body["read_after"]} if stored.body["read_after"] else {}
        return JSONResponse(stored.body, 201 if stored.is_new else 200, headers=headers)

    return router


def _turns(reader: BodyReader, key: str | None, body: bytes) -> Turn | list[Turn | Refused]:
    """Return the turn of a body, or those of its list. Raises Refused."""
    message = parse_object(body)
    if "turns" not in message:
        return _turn(reader, body, key, None)
    if unknown := [name for name in message if name != "turns"]:
        raise Refused("invalid_value", "with `turns` no other field is allowed", str(unknown[0])[:80])
    if not isinstance(message["turns"], list) or not 1 <= len(message["turns"]) <= MAX_TURNS:
        raise Refused("invalid_value", f"`turns` is a list of 1 to {MAX_TURNS} turns", "turns")
    turns: list[Turn | Refused] = []
    for index, turn in enumerate(message["turns"]):
        if isinstance(turn, dict):
            try:
                turns.append(_turn(reader, to_json(turn), key, index))
            except Refused as refused:
                turns.append(refused)
        else:
            turns.append(Refused("invalid_value", "a turn is a JSON object", f"turns.{index}"))
    return turns


def _turn(reader: BodyReader, body: bytes, key: str | None, index: int | None) -> Turn:
    scope, fields = reader.parse(body)
    if key is not None and fields.get("turn_id") is None:
        fields = with_time({**fields, "turn_id": idempotent_turn_id(key, {**fields, **scope}, index)})
    return Turn(scope, fields)


CHANGES: Mapping[str, Operation[WholeMemory] | None] = {
    "mode": SET_MEMORY_MODE,
    "text": None,
    "interaction_mode": SET_INTERACTION_MODE,
}
"""Fields of a change, and their commands; another text is another turn."""

FILTERS = ("searchable", "private")
"""Fields that are one change together."""


def memory_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about one memory."""
    router = APIRouter(tags=["memories"])
    path = "/v1/users/{user_id}/memories/{memory_id}"

    @router.get(path, operation_id="get_memory", summary="Show a memory", openapi_extra=shapes.projects.openapi())
    async def get_memory(request: Request, call: ReadCall, memory_id: PathName) -> JSONResponse:
        scope, _ = shapes.projects.read(request)
        return JSONResponse(await service.memories.get(call, scope, memory_id))

    @router.patch(
        path,
        operation_id="change_memory",
        summary="Move a memory, edit its text, correct its interaction mode, or filter it",
        openapi_extra=shapes.memory_change.openapi(),
    )
    async def change_memory(request: Request, call: ReadCall, memory_id: PathName) -> JSONResponse:
        scope, fields = await shapes.memory_change.read(request)
        changes = [name for name in CHANGES if fields.get(name) is not None]
        filters = {name: fields[name] for name in FILTERS if fields.get(name) is not None}
        if len(changes) + bool(filters) != 1:
            message = "give exactly one of `mode`, `text` and `interaction_mode`, or of `searchable` and `private` any"
            raise Refused("invalid_value", message, (changes or list(CHANGES))[0])
        if filters:
            record = await service.memories.change(SET_MEMORY_VISIBILITY, call, scope, memory_id, filters)
        elif (operation := CHANGES[name := changes[0]]) is None:
            record = await service.memories.edit(call, scope, memory_id, fields[name])
        else:
            record = await service.memories.change(operation, call, scope, memory_id, {name: fields[name]})
        return JSONResponse(record)

    @router.delete(
        path,
        operation_id="forget_memory",
        summary="Forget a memory and its derived data",
        openapi_extra=shapes.project.openapi(),
    )
    async def forget_memory(request: Request, call: ManageCall, memory_id: PathName) -> JSONResponse:
        scope, _ = shapes.project.read(request)
        return JSONResponse(await service.memories.forget(call, scope, memory_id))

    return router


def forget_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that forget many at once; each needs the name repeated."""
    router = APIRouter(tags=["memories"])
    document = shapes.confirmed.openapi()

    @router.delete(
        "/v1/users/{user_id}/conversations/{conversation_id}",
        operation_id="forget_conversation",
        summary="Forget a conversation",
        openapi_extra=document,
    )
    async def forget_conversation(request: Request, call: ManageCall, conversation_id: PathName) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], conversation_id)
        what = {"conversation_id": conversation_id}
        return JSONResponse(await service.memories.forget_all(call, scope, what))

    @router.delete(
        "/v1/users/{user_id}/projects/{project_id}",
        operation_id="forget_project",
        summary="Forget a project",
        # The project is in the path.
        openapi_extra={"parameters": [part for part in document["parameters"] if part["name"] != "project_id"]},
    )
    async def forget_project(request: Request, call: ManageCall, project_id: PathName) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], project_id)
        forgotten = await service.memories.forget_all(call, {**scope, "project_id": project_id}, {"project": True})
        return JSONResponse(forgotten)

    @router.delete(
        "/v1/users/{user_id}",
        operation_id="forget_user",
        summary="Forget a user, in all projects",
        openapi_extra=document,
    )
    async def forget_user(request: Request, call: ManageCall) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], call.user_id)
        return JSONResponse(await service.memories.forget_all(call, scope, {"user": True}))

    return router


def _require_same(confirm: str, name: str) -> None:
    if confirm != name:
        raise Refused("invalid_value", "to forget all of it, give its name again as `confirm`", "confirm")
