"""The parts of every page: the service, the view of a request, the head with pickers and navigation, templates, assets.

Guaranteed: text of memories is escaped wherever it is shown; a name that a template misspells raises. The address of a
static file has a digest of all of them, so that browsers may cache it for ever. Vendored files are listed in
`static/vendor/vendored.json` with version, licence and SHA-256; a test compares them.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from modestream_client.operations import LIST_PROJECTS
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from gateway.pages.formats import FILTERS
from gateway.pages.requests import PAGES, View, view_of
from gateway.service.access import DEFAULT_PROJECT, PROJECT
from gateway.service.backend import Json
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from schemas.scopes import ANY_VALUE

TEMPLATES = Path(__file__).with_name("templates")

STATIC = Path(__file__).with_name("static")

DIGEST_CHARS = 12
"""Characters of a digest in a name: enough to tell versions of one file apart."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Return the text of a template."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    # One for the process: templates are compiled once.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["asset"] = asset
    environment.filters.update(FILTERS)
    return environment


def asset(name: str) -> str:
    """Return the address of a file of `static`. Raises KeyError for an unknown name."""
    return f"{PAGES}/static/{_digests()[name]}/{name}"


async def serve_asset(request: Request) -> Response:
    """Serve a static file."""
    name = request.path_params["name"]
    if name not in _digests():
        raise HTTPException(404)
    is_current = request.path_params["digest"] == _digests()[name]
    caching = "public, max-age=31536000, immutable" if is_current else "no-cache"
    return FileResponse(
        STATIC / name, media_type=MEDIA_TYPES.get(Path(name).suffix), headers={"Cache-Control": caching}
    )


@cache
def _digests() -> Mapping[str, str]:
    """Return the digest for each name."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    # One digest of all files: modules import each other by relative names, which keep the importer's digest.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:DIGEST_CHARS]
    return {path.relative_to(STATIC).as_posix(): digest for path in files}


MAX_PROJECTS = 200
"""Projects in the picker."""

PICKER_TIMEOUT_S = 3.0
"""Limit of the questions for the pickers: every page waits for them."""

NOTICES = {
    "moved": "Memories moved to the mode {name}: {count}.",
    "moved_one": "Moved to the mode {name}.",
    "moved_back": "Memories moved back: {count}.",
    "forgotten": "Memories forgotten: {count}.",
    "edited": "Saved the text as a new version.",
    "restored": "Restored the previous text.",
    "corrected": "Corrected the interaction mode.",
    "filtered": "Saved the visibility.",
    "saved": "Saved {name}.",
    "renamed": "Renamed to {name}.",
    "deleted": "Deleted {name}.",
    "started": "Started. This page shows the progress.",
    "replayed": "Published {count} again.",
}
"""Result of an action, by the name that its redirect carries. Only `count`, a number, and `name`, shown as text, come
from the address."""


@dataclass(frozen=True)
class Link:
    """An entry of the navigation."""

    page: str
    title: str
    is_of_user: bool = True


LINKS = (
    Link("", "Overview", is_of_user=False),
    Link("memories", "Memories"),
    Link("conversations", "Conversations"),
    Link("ask", "Ask"),
    Link("map", "Map"),
    Link("modes", "Modes"),
    Link("categories", "Categories"),
    Link("intention", "Intention"),
    Link("consolidations", "Consolidations"),
    Link("runs", "Runs"),
    Link("dead-letters", "Dead letters", is_of_user=False),
)


@dataclass(frozen=True)
class Header:
    """The head of a page. `modes` has the number of memories by mode, most first."""

    title: str
    active: str
    projects: tuple[str, ...] = ()
    modes: tuple[tuple[str, int], ...] = ()
    links: tuple[Link, ...] = LINKS
    notice: str | None = None


class Pages:
    """Builds views and renders pages. `service` is that of HTTP and MCP too, so that its checks hold here."""

    def __init__(self, service: MemoryService, scope_fields: frozenset[str], *, is_signed_in: bool) -> None:
        self.service = service
        self._scope_fields = scope_fields
        self._is_signed_in = is_signed_in

    def view(self, request: Request) -> View:
        """Return the view of a request. Raises Refused."""
        return view_of(request, self.service, self._scope_fields)

    def scope_of(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return a record's scope without its user, which every call names itself."""
        return self.service.boundary_fields.others(record["scope"])

    async def in_one_project(self, view: View) -> View:
        """Return the view of a page about one project: the chosen one, else `default`, else the user's first."""
        if view.project is not None:
            return view
        names = await projects_of(self.service, view, view.call())
        first = DEFAULT_PROJECT if DEFAULT_PROJECT in names else min(names, default=DEFAULT_PROJECT)
        return replace(view, project=first, projects=names)

    async def render(self, view: View, template: str, title: str, active: str, **values: Any) -> HTMLResponse:
        """Return a page. Raises Refused."""
        header = await header_of(self.service, view, title, active)
        return self.part(view, template, header=header, is_signed_in=self._is_signed_in, **values)

    def part(self, view: View, template: str, **values: Any) -> HTMLResponse:
        """Return a part that replaces an older one in its page."""
        return HTMLResponse(self.text(view, template, **values))

    def text(self, view: View, template: str, **values: Any) -> str:
        """Return the text of a part, for events of a stream."""
        return rendered(template, {"view": view, **values})

    def bare(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page without a view, such as the one to sign in."""
        return HTMLResponse(rendered(template, values), status)


def see(address: str) -> Response:
    """Redirect to the page that shows the result of an action."""
    return RedirectResponse(address, 303)


async def header_of(service: MemoryService, view: View, title: str, active: str) -> Header:
    """Load the choices of the pickers. Raises Refused."""
    notice = notice_of(view.query)
    if view.user is None:
        return Header(title, active, notice=notice)
    projects = view.projects or frozenset()
    if view.projects is None:
        with worker_may_be_away():
            projects = await projects_of(service, view, view.call(PICKER_TIMEOUT_S))
    boundary = await boundary_of(service, view)
    counts = {view.mode: 0} if view.mode else {}
    counts |= {name: int(mode["memories"]) for name, mode in (boundary or {}).get("modes", {}).items()}
    return Header(
        title,
        active,
        projects=tuple(sorted(projects | ({view.project} if view.project else set()))),
        modes=tuple(sorted(counts.items(), key=lambda mode_and_count: (-mode_and_count[1], mode_and_count[0]))),
        notice=notice,
    )


def notice_of(query: Mapping[str, str]) -> str | None:
    """Return the notice that an address names; None for an unknown name."""
    sentence = NOTICES.get(query.get("notice", ""))
    if sentence is None:
        return None
    count = query.get("count", "")
    return sentence.format(count=count if count.isdecimal() else "0", name=query.get("name", "")[:64])


async def projects_of(service: MemoryService, view: View, call: Call) -> frozenset[str]:
    """Return all projects of the user. Raises Refused."""
    scope = {**view.read_scope, PROJECT: ANY_VALUE}
    listed = await service.operations.run(LIST_PROJECTS, call, scope, {"limit": MAX_PROJECTS})
    return frozenset(str(project["scope"][PROJECT]) for project in listed["items"])


async def boundary_of(service: MemoryService, view: View) -> Json | None:
    """Return the numbers of the chosen user; None if only the worker has them, and it does not answer."""
    with worker_may_be_away():
        return await service.users.boundary(view.call(PICKER_TIMEOUT_S))
    return None


@contextmanager
def worker_may_be_away() -> Iterator[None]:
    """Ignore that the worker does not answer: the page shows what the gateway knows."""
    try:
        yield
    except Refused as refused:
        if refused.code not in ("unavailable", "timeout"):
            raise
