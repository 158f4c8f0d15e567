"""Files: reading status, uploads, a file's text next to a picture of its page, retries of failed files."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from modestream_client.operations import GET_FILE_PARTS, LIST_FILES, RETRY_FAILED
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from gateway.http.routes.memories import RUNS_NOWHERE, download_of, read_file_form, upload_of
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, View, name_of, read_form
from gateway.pages.texts import Piece, pieces_of
from gateway.service.access import PROJECT, readable_project
from gateway.service.calls import Json, Refused
from schemas.state.files import uploaded_sha256

FILES_OF_PAGE = 50

PARTS_OF_PAGE = 40
"""Parts of a text without pages that are shown at once: some 15 pages of print."""

SHOWN_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Media types that browsers show, and in which no script can be."""

STATUSES = {"pending": "being read", "ready": "read", "failed": "failed"}

UPLOAD_WAIT_S = 60.0
"""Timeout of storing an upload, after it has been received."""


def file_pages(pages: Pages) -> Sequence[BaseRoute]:
    operations, files = pages.service.operations, pages.service.files

    async def show_all(request: Request) -> Response:
        view = pages.view(request)
        status = view.query.get("status") if view.query.get("status") in STATUSES else None
        skip = int(view.query["skip"][:9]) if view.query.get("skip", "").isdecimal() else 0
        listed = await files_of(pages, view, status=status, skip=skip, limit=FILES_OF_PAGE)
        pager = {
            "newer": None if skip == 0 else max(0, skip - FILES_OF_PAGE) or "",
            "older": skip + FILES_OF_PAGE if listed["total"] > skip + FILES_OF_PAGE else None,
        }
        values: Json = {"listed": listed, "chosen": status, "pager": pager, "statuses": STATUSES}
        return await pages.render(view, "files.html", "Files", "files", **values)

    async def take(request: Request) -> Response:
        return await _take(pages, request)

    async def retry(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        project = form.text("project_id")
        await operations.start(RETRY_FAILED, view.call(), {PROJECT: project}, {})
        return pages.done(view.address("files"), f"The failed files of the project {project} are read again.")

    async def state(request: Request) -> Response:
        view = pages.view(request)
        shown = await _parts(pages, view, view.query.get("memory", ""), limit=1)
        return pages.part(view, "parts/file_state.html", file=shown["file"])

    async def show_one(request: Request) -> Response:
        return await _file_page(pages, pages.view(request), name_of(request, "memory_id"))

    async def picture(request: Request) -> Response:
        return await _picture(pages, request)

    async def download(request: Request) -> Response:
        return download_of(await files.open(pages.view(request).call(), name_of(request, "sha256")))

    return [
        Route(f"{PAGES}/files", show_all, methods=["GET"]),
        Route(f"{PAGES}/files", take, methods=["POST"]),
        Route(f"{PAGES}/files/retry", retry, methods=["POST"]),
        Route(f"{PAGES}/files/state", state, methods=["GET"]),
        Route(f"{PAGES}/files/{{sha256}}", download, methods=["GET"]),
        Route(f"{PAGES}/files/{{sha256}}/picture", picture, methods=["GET"]),
        Route(f"{PAGES}/memories/{{memory_id}}/file", show_one, methods=["GET"]),
    ]


async def _take(pages: Pages, request: Request) -> Response:
    """Store an upload and its turn; lead to its conversation, or to the list."""
    files, view = pages.service.files, pages.view(request)
    form = await read_file_form(request, files)
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise Refused("invalid_value", "choose a file", "file")
        sent = {name: value for name, value in form.multi_items() if isinstance(value, str) and value.strip()}
        conversation = sent.get("conversation_id", "").strip() or "files"
        fields: dict[str, str] = {name: sent[name] for name in ("mode", "content") if name in sent}
        scope = {PROJECT: sent.get("project_id") or view.project or "default"}
        upload = await upload_of(file, files, scope, {"conversation_id": conversation, **fields})
        stored = await files.add(view.call(UPLOAD_WAIT_S), upload)
    finally:
        await form.close()
    done = f"Uploaded {upload.name}: it is being read." if stored.is_new else f"{upload.name} was there already."
    is_back = sent.get("back") == "conversation"
    to = view.address("conversations", conversation, of=scope[PROJECT]) + "#files" if is_back else None
    answer = pages.done(to or view.address("files"), done)
    if request.headers.get("accept", "").startswith("application/json"):
        # A script follows the address itself: it would lose the notice with the page.
        answer.status_code = 201
    return answer


async def _picture(pages: Pages, request: Request) -> Response:
    """Return an image as it is, or a drawn page of a PDF."""
    files = pages.service.files
    view, sha256 = pages.view(request), name_of(request, "sha256")
    page = view.query.get("page", "")
    if page.isdecimal() and int(page[:6]) > 0:
        content = await files.picture(view.call(30), sha256, int(page[:6]))
        return Response(content, media_type="image/webp", headers=RUNS_NOWHERE)
    opened = await files.open(view.call(), sha256)
    if opened.media_type not in SHOWN_IMAGES:
        raise HTTPException(404)
    return StreamingResponse(opened.pieces, media_type=opened.media_type, headers=RUNS_NOWHERE)


async def files_of(pages: Pages, view: View, **fields: Any) -> Json:
    """Return the files of the chosen project, else of all that the caller may read, newest first. Raises Refused."""
    asked = {name: value for name, value in fields.items() if value is not None}
    scope = {PROJECT: view.project or readable_project(view.caller, view.user or "")}
    asked["all_projects"] = view.project is None
    return await pages.service.operations.run(LIST_FILES, view.call(), scope, asked)


async def _parts(pages: Pages, view: View, memory_id: str, **fields: Any) -> Json:
    if not memory_id:
        raise Refused("invalid_value", "name the memory that has the file", "memory")
    asked = {"memory_id": memory_id, "uri": view.query.get("uri") or None, **fields}
    scope = {PROJECT: readable_project(view.caller, view.user or "")}
    return await pages.service.operations.run(GET_FILE_PARTS, view.call(), scope, asked)


async def _file_page(pages: Pages, view: View, memory_id: str) -> Response:
    """Show a page of a file, or its text from a position on; `start` and `end` bound the marked text."""

    def number(name: str) -> int | None:
        text = view.query.get(name, "")
        return int(text[:9]) if text.isdecimal() else None

    start, end = number("start"), number("end")
    page = number("page") or None
    at = start if page is None else None
    shown = await _parts(pages, view, memory_id, page=page, at=at, skip=number("skip") or 0, limit=PARTS_OF_PAGE)
    file = shown["file"]
    if page is None and file["pages"] and file["status"] == "ready":
        # A file with pages is read page by page: the first, or that of the position.
        page = next((part["page"] for part in shown["parts"] if part["page"] is not None), 1)
        shown = await _parts(pages, view, memory_id, page=page, limit=PARTS_OF_PAGE)
    last = shown["first"] + len(shown["parts"])
    return await pages.render(
        view,
        "file.html",
        file["name"],
        "files",
        file=file,
        parts=[(part, _marked(part, start, end)) for part in shown["parts"]],
        page=page,
        preview=preview_of(file),
        pager={
            "newer": max(0, shown["first"] - PARTS_OF_PAGE) if shown["first"] else None,
            "older": last if last < shown["total"] else None,
        },
        retry=view.may("manage"),
    )


def preview_of(file: Mapping[str, Any]) -> str | None:
    """Return how an uploaded file is previewed: `image` as it is, `pages` drawn; None for all others."""
    if uploaded_sha256(file["uri"]) is None:
        return None
    if file["media_type"] in SHOWN_IMAGES:
        return "image"
    is_pdf = file["media_type"] == "application/pdf" or PurePath(file["name"]).suffix.lower() == ".pdf"
    return "pages" if is_pdf and file["pages"] else None


def _marked(part: Mapping[str, Any], start: int | None, end: int | None) -> list[Piece]:
    if start is None or end is None:
        return pieces_of(part["text"], [])
    return pieces_of(part["text"], [(start - part["start"], end - part["start"])])
