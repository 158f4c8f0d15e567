"""`POST …/turns`: one turn, or up to 100 in order. One memory, and what is to be forgotten."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse
from modestream_client.hits import WholeMemory
from modestream_client.operations import SET_INTERACTION_MODE, SET_MEMORY_MODE, SET_MEMORY_VISIBILITY, Operation
from modestream_client.results.memory import WholeMemory
from pydantic_core import to_json

from gateway.http.calls import ManageCall, PathName, ReadCall, WriteCall
from gateway.http.limits import CHARGE_WRITES
from gateway.http.shapes import BodyReader, Shapes, parsed
from gateway.service.backend import Json
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from gateway.service.turns import Stored, Turn, idempotent_turn_id, with_time
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

    @router.post(
        "/v1/users/{user_id}/turns",
        operation_id="add_turns",
        summary="Remember one turn, or several in order",
        status_code=201,
        openapi_extra=_document(shapes.turn),
    )
    async def add_turns(request: Request, call: WriteCall, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        turns = await parsed(await request.body(), partial(_turns, shapes.turn, idempotency_key))
        if isinstance(turns, Turn):
            return _answer(await service.turns.add(call, turns))
        request.scope[CHARGE_WRITES](len(turns) - 1)
        return _answer(await service.turns.add_all(call, turns))

    return router


def _turns(reader: BodyReader, key: str | None, body: bytes) -> Turn | list[Turn | Refused]:
    """Return the one turn of a body, or those of its list. Raises Refused."""
    many = _many(parse_object(body))
    if many is None:
        return _turn(reader, body, key, None)
    return [_turn_or_refused(reader, turn, key, place) for place, turn in enumerate(many)]


def _many(message: dict[str, Any]) -> list[Any] | None:
    """Return the turns of a body with several; None if it is one turn. Raises Refused."""
    if "turns" not in message:
        return None
    turns = message["turns"]
    if unknown := [name for name in message if name != "turns"]:
        raise Refused("invalid_value", "beside `turns` there is no other field", str(unknown[0])[:80])
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        raise Refused("invalid_value", f"`turns` is a list of 1 to {MAX_TURNS} turns", "turns")
    return turns


def _turn(reader: BodyReader, body: bytes, key: str | None, place: int | None) -> Turn:
    scope, fields = reader.parse(body)
    if key is not None and fields.get("turn_id") is None:
        fields = with_time({**fields, "turn_id": idempotent_turn_id(key, {**fields, **scope}, place)})
    return Turn(scope, fields)


def _turn_or_refused(reader: BodyReader, turn: object, key: str | None, place: int) -> Turn | Refused:
    if not isinstance(turn, dict):
        return Refused("invalid_value", "a turn is a JSON object", f"turns.{place}")
    try:
        return _turn(reader, to_json(turn), key, place)
    except Refused as refused:
        return refused


def _answer(stored: Stored) -> JSONResponse:
    headers = {"X-Read-After": stored.body["read_after"]} if stored.body["read_after"] else {}
    return JSONResponse(stored.body, 201 if stored.is_new else 200, headers=headers)


def _document(turn: BodyReader) -> dict[str, Any]:
    single: dict[str, Any] = {"$ref": f"#/components/schemas/{turn.shape.__name__}"}
    items = {"type": "array", "items": single, "minItems": 1, "maxItems": MAX_TURNS}
    many = {"type": "object", "properties": {"turns": items}, "required": ["turns"], "additionalProperties": False}
    content = {"application/json": {"schema": {"anyOf": [single, many]}}}
    return {"requestBody": {"required": True, "content": content}}


CHANGES: Mapping[str, Operation[WholeMemory] | None] = {
    "mode": SET_MEMORY_MODE,
    "text": None,
    "interaction_mode": SET_INTERACTION_MODE,
}
"""Fields that are a change, and its command; another text is another turn."""

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
        summary="Move a memory, edit its text, correct what it is for, or filter it",
        openapi_extra=shapes.memory_change.openapi(),
    )
    async def change_memory(request: Request, call: ReadCall, memory_id: PathName) -> JSONResponse:
        scope, fields = await shapes.memory_change.read(request)
        return JSONResponse(await _changed(service, call, scope, memory_id, fields))

    @router.delete(
        path,
        operation_id="forget_memory",
        summary="Forget a memory and what derives from it",
        openapi_extra=shapes.project.openapi(),
    )
    async def forget_memory(request: Request, call: ManageCall, memory_id: PathName) -> JSONResponse:
        scope, _ = shapes.project.read(request)
        return JSONResponse(await service.memories.forget(call, scope, memory_id))

    return router


def forget_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that forget much at once; each needs the name again."""
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
        openapi_extra=_without_project(document),
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


async def _changed(service: MemoryService, call: Call, scope: Json, memory_id: str, fields: Json) -> Json:
    named = [name for name in CHANGES if fields.get(name) is not None]
    filters = {name: fields[name] for name in FILTERS if fields.get(name) is not None}
    if len(named) + bool(filters) != 1:
        message = "give exactly one of `mode`, `text` and `interaction_mode`, or of `searchable` and `private` any"
        raise Refused("invalid_value", message, (named or list(CHANGES))[0])
    if filters:
        return await service.memories.change(SET_MEMORY_VISIBILITY, call, scope, memory_id, filters)
    [name] = named
    if (operation := CHANGES[name]) is None:
        return await service.memories.edit(call, scope, memory_id, fields[name])
    return await service.memories.change(operation, call, scope, memory_id, {name: fields[name]})


def _require_same(confirm: str, name: str) -> None:
    if confirm != name:
        raise Refused("invalid_value", "to forget all of it, give its name again as `confirm`", "confirm")


def _without_project(document: Json) -> Json:
    """The project is in the path."""
    return {"parameters": [parameter for parameter in document["parameters"] if parameter["name"] != "project_id"]}
