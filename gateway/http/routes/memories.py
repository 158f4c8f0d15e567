"""`POST …/turns`: one turn, or up to 100 in order. One memory, and forgetting many. Files, as turns with a resource."""

import asyncio
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import IO, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from modestream_client.hits import WholeMemory
from modestream_client.operations import SET_INTERACTION_MODE, SET_MEMORY_MODE, SET_MEMORY_VISIBILITY, Operation
from pydantic_core import to_json
from starlette.datastructures import FormData, UploadFile

from gateway.http.calls import ManageCall, PathName, ReadCall, WriteCall
from gateway.http.limits import CHARGE_WRITES, read_upload
from gateway.http.shapes import BodyReader, Shapes, parsed
from gateway.service.calls import RETRY_AFTER_S, Json, Refused
from gateway.service.files import Files, OpenFile, Upload, metadata_of, plain_media_type, plain_name
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


MAX_FIELD_BYTES = 2 * 1024 * 1024
"""Bytes of one field: metadata may have one million."""

MAX_FIELDS = 32

MAX_UPLOADS = 64
"""Maximum concurrent uploads: each occupies a temporary file until it is stored."""

RUNS_NOWHERE = {
    # What is uploaded may be a page with a script: it runs nowhere as one of ours.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


def file_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    router = APIRouter(tags=["files"])
    taken = asyncio.Semaphore(MAX_UPLOADS)

    @router.post(
        "/v1/users/{user_id}/files",
        operation_id="upload_file",
        summary="Remember a file: it becomes a turn, and what it says is found once it is read",
        status_code=201,
        openapi_extra=_document(shapes),
    )
    async def upload_file(request: Request, call: WriteCall, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        if taken.locked():
            raise Refused("unavailable", "too many uploads are in progress; try again", retry_after_s=RETRY_AFTER_S)
        async with taken:
            form = await read_file_form(request, service.files)
            try:
                upload = await _upload(form, shapes, service.files)
                stored = await service.files.add(call, upload, idempotency_key)
            finally:
                await form.close()
        headers = {"X-Read-After": stored.body["read_after"]} if stored.body["read_after"] else {}
        return JSONResponse(stored.body, 201 if stored.is_new else 200, headers=headers)

    @router.get(
        "/v1/users/{user_id}/files/{sha256}",
        operation_id="get_file",
        summary="The bytes of a file that a memory of the user has",
        response_class=StreamingResponse,
    )
    async def get_file(call: ReadCall, sha256: PathName) -> StreamingResponse:
        return download_of(await service.files.open(call, sha256))

    return router


def download_of(opened: OpenFile) -> StreamingResponse:
    """Return the answer with the bytes of a file, which no browser runs."""
    headers = {
        **RUNS_NOWHERE,
        "Content-Length": str(opened.size),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(plain_name(opened.name), safe='')}",
    }
    return StreamingResponse(opened.pieces, media_type=plain_media_type(opened.media_type), headers=headers)


def _document(shapes: Shapes) -> Json:
    schema = shapes.upload.shape.__name__
    file = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
    both = {"allOf": [file, {"$ref": f"#/components/schemas/{schema}"}]}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": both}}}}


async def read_file_form(request: Request, files: Files) -> FormData:
    """Read a form whose file goes to disk as it comes; the caller closes it. Raises Refused."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refused("invalid_value", "send the file as `multipart/form-data`", "file")
    most = files.max_bytes + MAX_FIELD_BYTES
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise _too_large(files)

    unreadable = Refused("invalid_value", "the form can't be read: one `file`, and fields of 2 MiB at most", "file")
    bounds = {"max_files": 1, "max_fields": MAX_FIELDS, "max_part_size": MAX_FIELD_BYTES}
    return await read_upload(request, most, _too_large(files), unreadable, **bounds)


async def _upload(form: FormData, shapes: Shapes, files: Files) -> Upload:
    """Check a form. Raises Refused."""
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Refused("invalid_value", "the form has no file", "file")
    sent: Json = {}
    for name, value in form.multi_items():
        if name == "file":
            continue
        if not isinstance(value, str) or name in sent:
            raise Refused("invalid_value", "give each field once, as text", name[:80])
        sent[name] = metadata_of(value) if name == "metadata" else value
    scope, fields = shapes.upload.parse(to_json(sent))
    return await upload_of(file, files, scope, fields)


async def upload_of(file: UploadFile, files: Files, scope: Json, fields: Json) -> Upload:
    """Return the file of a form as an upload. Raises Refused, `too_large`."""
    size, sha256 = await asyncio.to_thread(_measured, file.file)
    if size > files.max_bytes:
        raise _too_large(files)
    name, media_type = plain_name(file.filename or ""), plain_media_type(file.content_type)
    return Upload(file.file, size, sha256, name, media_type, scope, fields)


def _measured(content: IO[bytes]) -> tuple[int, str]:
    """Return size and hash of a file, which is at its beginning again."""
    content.seek(0)
    sha256 = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    size = content.tell()
    content.seek(0)
    return size, sha256


def _too_large(files: Files) -> Refused:
    return Refused("too_large", f"a file has at most {files.max_bytes:,} bytes", "file")
