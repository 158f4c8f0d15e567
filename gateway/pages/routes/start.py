"""A first memory: a turn by hand, by curl, from a sample, or from an export of another program."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from modestream_client.imports import FORMATS
from modestream_client.operations import DECLARE_MODE
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.http.limits import read_upload
from gateway.pages.pages import Pages, see
from gateway.pages.requests import PAGES, View, base_of, read_form
from gateway.service.access import PROJECT, may_in_project
from gateway.service.calls import Call, Json, Refused
from gateway.service.imports import MAX_EXPORT_BYTES, Asked
from gateway.service.turns import Turn

SAMPLE = Path(__file__).parents[1] / "sample.json"
"""A sample conversation: modes with their descriptions, and turns."""

SAMPLE_USER = "sample"

FORM_BYTES = 64 * 1024
"""Maximum bytes of an upload in addition to its file."""

PIECE_BYTES = 256 * 1024

CURL = """curl -X POST {base}/v1/users/{user}/turns \\
  -H 'Content-Type: application/json'{key} \\
  -d '{{"conversation_id": "first", "role": "user", "content": "The spare key hangs behind the pantry door."}}'"""


def start_pages(pages: Pages) -> Sequence[BaseRoute]:
    turns = pages.service.turns

    async def show(request: Request) -> Response:
        view = pages.view(request)
        key = " \\\n  -H 'Authorization: Bearer ms_…'" if pages.is_signed_in else ""
        user = view.user or view.caller.own_user or "ana"
        curl = CURL.format(base=base_of(request), user=user, key=key)
        values: Json = {"user": user, "curl": curl, "formats": FORMATS, **await _job(pages, view)}
        title = "Start" if view.user is None else "Add and import"
        return await pages.render(view, "start.html", title, "add", **values)

    async def remember(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        user = form.text("user")
        call = Call.within(view.caller, user, request_id=view.request_id)
        fields: Json = {
            "conversation_id": form.optional("conversation_id") or "first",
            "turn_id": f"page-{token_hex(8)}",
            "role": "user",
            "content": (form.all("content") or [""])[-1].replace("\r\n", "\n"),
        }
        fields |= {name: value for name in ("speaker", "mode") if (value := form.optional(name))}
        await turns.add(call, Turn({PROJECT: form.optional("project") or "default"}, fields))
        return pages.done(view.address(user=user, everyone=None), "Remembered. Ask for it now.")

    async def load_sample(request: Request) -> Response:
        view = pages.view(request)
        user = view.user or view.caller.own_user or SAMPLE_USER
        call = Call.within(view.caller, user, 60, view.request_id)
        if not may_in_project(view.caller, user, None, "manage"):
            raise Refused("not_allowed", "declaring the sample's modes needs a key that may manage")
        sample = json.loads(SAMPLE.read_text())
        for name, description in sample["modes"].items():
            declared = {"name": name, "description": description, "embedder": "general"}
            await pages.service.operations.run(DECLARE_MODE, call, {}, declared)
        added = await turns.add_all(call, [Turn({}, fields) for fields in sample["turns"]])
        stored = sum("error" not in result for result in added.body["results"])
        address = view.address("ask", user=user, project=None, mode=None, everyone=None, q=sample["question"])
        return pages.done(address, f"Loaded {stored} turns of three conversations. This is the first question.")

    async def arrived(request: Request) -> Response:
        view = pages.view(request)
        call = Call.within(view.caller, "", 3, view.request_id)
        listed = await pages.service.users.list(call, "", 1, None, asks_worker=False)
        first = next((pages.service.boundary_fields.name(user["scope"]) for user in listed["items"]), None)
        return pages.part(view, "parts/arrived.html", first=first)

    return [
        Route(f"{PAGES}/start", show, methods=["GET"]),
        Route(f"{PAGES}/add", show, methods=["GET"]),
        Route(f"{PAGES}/start/turn", remember, methods=["POST"]),
        Route(f"{PAGES}/start/sample", load_sample, methods=["POST"]),
        Route(f"{PAGES}/start/arrived", arrived),
    ]


def import_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes of imports: an upload, and how far it is."""

    async def take(request: Request) -> Response:
        view = pages.view(request)
        call = view.call(60)
        most = f"an export has at most {MAX_EXPORT_BYTES // 1024**2} MiB here"
        form = await read_upload(
            request,
            MAX_EXPORT_BYTES + FORM_BYTES,
            Refused("too_large", most, "file"),
            Refused("invalid_value", "the upload can't be read; choose the file again", "file"),
        )
        try:
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise Refused("invalid_value", "choose a file", "file")
            scope = {} if view.project is None else {PROJECT: view.project}
            asked = Asked(str(form.get("format") or ""), scope, mode=str(form.get("mode") or "") or None)
            job, _ = await pages.service.imports.begin(call, asked, _read(file))
        finally:
            await form.close()
        return see(view.address("add", job=job))

    async def progress(request: Request) -> Response:
        view = pages.view(request)
        return pages.part(view, "parts/import_state.html", **await _job(pages, view))

    return [Route(f"{PAGES}/add/import", take, methods=["POST"]), Route(f"{PAGES}/add/progress", progress)]


async def _job(pages: Pages, view: View) -> dict[str, Any]:
    """Return the state of the import that the parameter `job` names."""
    job = view.query.get("job") if view.user is not None else None
    if not job:
        return {"job": None, "has_ended": False, "counts": {}, "failure": None}
    try:
        has_ended, counts = await pages.service.operations.result(view.call(), job)
    except Refused as refused:
        return {"job": job, "has_ended": True, "counts": {}, "failure": refused}
    return {"job": job, "has_ended": has_ended, "counts": counts, "failure": None}


async def _read(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE_BYTES):
        yield piece
        await asyncio.sleep(0)
