"""`POST …/files`: a file as a turn with a resource. `GET …/files/{sha256}`: its bytes."""

import asyncio
import hashlib
from typing import IO
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic_core import to_json
from starlette.datastructures import FormData, UploadFile

from gateway.http.calls import PathName, ReadCall, WriteCall
from gateway.http.limits import read_upload
from gateway.http.routes.memories import IdempotencyKey
from gateway.http.shapes import Shapes
from gateway.service.calls import RETRY_AFTER_S, Json, Refused
from gateway.service.files import Files, OpenFile, Upload, metadata_of, plain_media_type, plain_name
from gateway.service.service import MemoryService

MAX_FIELD_BYTES = 2 * 1024 * 1024
"""Bytes of one field: metadata may have one million."""

MAX_FIELDS = 32

MAX_UPLOADS = 64
"""Uploads that are taken at the same time: each lies in a temporary file until it is stored."""

RUNS_NOWHERE = {
    # What is uploaded may be a page with a script: it runs nowhere as one of ours.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


def file_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes of files."""
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
            raise Refused("unavailable", "this gateway has too many uploads under way", retry_after_s=RETRY_AFTER_S)
        async with taken:
            form = await _form(request, service.files)
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


async def _form(request: Request, files: Files) -> FormData:
    """Read a form whose file goes to disk as it comes. Raises Refused."""
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
