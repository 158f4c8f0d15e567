"""`POST …/turns`: one turn, or up to 100 in order."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from gateway.http.calls import WriteCall
from gateway.http.contract import Shapes
from gateway.http.limits import CHARGE_WRITES
from gateway.http.shapes import BodyReader, parsed
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
    return [_turn_or_refused(reader, one, key, place) for place, one in enumerate(many)]


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


def _turn_or_refused(reader: BodyReader, one: object, key: str | None, place: int) -> Turn | Refused:
    if not isinstance(one, dict):
        return Refused("invalid_value", "a turn is a JSON object", f"turns.{place}")
    try:
        return _turn(reader, to_json(one), key, place)
    except Refused as refused:
        return refused


def _answer(stored: Stored) -> JSONResponse:
    headers = {"X-Read-After": stored.body["read_after"]} if stored.body["read_after"] else {}
    return JSONResponse(stored.body, 201 if stored.is_new else 200, headers=headers)


def _document(turn: BodyReader) -> dict[str, Any]:
    one: dict[str, Any] = {"$ref": f"#/components/schemas/{turn.shape.__name__}"}
    items = {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_TURNS}
    many = {"type": "object", "properties": {"turns": items}, "required": ["turns"], "additionalProperties": False}
    content = {"application/json": {"schema": {"anyOf": [one, many]}}}
    return {"requestBody": {"required": True, "content": content}}
