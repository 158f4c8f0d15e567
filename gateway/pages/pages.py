"""The parts of every page: the service, the view of a request, the head with pickers and navigation, templates, assets.

Guaranteed: text of memories is escaped wherever it is shown; a name that a template misspells raises. The address of a
static file has a digest of all of them, so that browsers may cache it for ever. Vendored files are listed in
`static/vendor/vendored.json` with version, licence and SHA-256; a test compares them.
"""

import asyncio
import gzip
import hashlib
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from modestream_client.operations import HEALTH, LIST_MODES, LIST_PROJECTS
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway.pages.formats import FILTERS
from gateway.pages.refill import refilled
from gateway.pages.requests import COOKIE, PAGES, Flash, Flashes, Form, RefusedForm, Undo, View, view_of
from gateway.pages.texts import drawn
from gateway.service.access import DEFAULT_PROJECT, PROJECT
from gateway.service.calls import Call, Json, Refused
from gateway.service.service import MemoryService
from schemas.scopes import ANY_VALUE

GLOSSARY: Mapping[str, str] = {
    "memory": "Anything that can be recalled: a turn, a fact found in turns, or a summary of several.",
    "turn": "One message of a conversation, as it was said.",
    "fact": "A statement, preference, rule or goal found in a turn. It keeps a link to the words it comes from.",
    "summary": "One memory made of several similar turns by a consolidation.",
    "mode": "A named way of speaking, such as journal or code, with its own vectors and its own search.",
    "embedder": "The model that turns text into vectors, so that memories are found by meaning.",
    "category": "A topic of facts within one project, with a summary.",
    "consolidation": "A run that summarizes similar turns, merges duplicates and lowers the weight of old memories.",
    "superseded": "Replaced by a newer memory. Searches leave it out; it is not deleted.",
    "dead letter": "A record that could not be processed. It is kept in full and can be published again.",
}


AnswerT = TypeVar("AnswerT")
OtherT = TypeVar("OtherT")

TEMPLATES = Path(__file__).with_name("templates")

STATIC = Path(__file__).with_name("static")

DIGEST_CHARS = 12
"""Characters of a digest in a name: enough to tell versions of one file apart."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


def rendered(template: str, values: Mapping[str, Any]) -> str:
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
    environment.filters.update(FILTERS)
    environment.globals |= {"asset": asset, "drawn": drawn, "glossary": GLOSSARY}
    parts = environment.get_template("parts/ui.html").module
    environment.globals |= {name: getattr(parts, name) for name in ("copyable", "icon", "term")}
    return environment


def asset(name: str) -> str:
    """Return the address of a file of `static`. Raises KeyError for an unknown name."""
    return f"{PAGES}/static/{_digests()[name]}/{name}"


def scripts_of(folder: str) -> Sequence[str]:
    """Return the names of the modules in a folder of `static`."""
    return [name for name in _digests() if name.startswith(f"{folder}/") and name.endswith(".js")]


def accepts_gzip(request: Request) -> bool:
    """True if an answer may be packed by its route; the middleware packs any other one, each time."""
    return "gzip" in request.headers.get("accept-encoding", "")


async def serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _digests():
        raise HTTPException(404)
    is_current = request.path_params["digest"] == _digests()[name]
    headers = {"Cache-Control": "public, max-age=31536000, immutable" if is_current else "no-cache"}
    content, packed = _content(name)
    if packed is not None:
        headers |= {"Vary": "Accept-Encoding"}
        if accepts_gzip(request):
            content, headers = packed, headers | {"Content-Encoding": "gzip"}
    return Response(content, media_type=MEDIA_TYPES.get(Path(name).suffix), headers=headers)


@cache
def _content(name: str) -> tuple[bytes, bytes | None]:
    """Return a file of `static`, and as gzip if that is smaller. A first visit requests some twenty at once."""
    content = (STATIC / name).read_bytes()
    packed = gzip.compress(content, mtime=0)
    return content, packed if len(packed) < len(content) else None


@cache
def _digests() -> Mapping[str, str]:
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    # One digest of all files: modules import each other by relative names, which keep the importer's digest.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:DIGEST_CHARS]
    return {path.relative_to(STATIC).as_posix(): digest for path in files}


MAX_PROJECTS = 200

PICKER_TIMEOUT_S = 3.0
"""Limit of the questions for the pickers: every page waits for them."""

STATE_S = 4.0
"""Time to live of the worker's state: every question costs it milliseconds, for each open page."""

MAX_COLOURED_USERS = 10_000
"""Users whose modes' colours are in memory."""


@dataclass(frozen=True)
class Link:
    """An entry of the navigation. `picks`: its page's pickers. `of`: its subject, or its requirement."""

    page: str
    title: str
    icon: str
    picks: tuple[str, ...] = ()
    of: str = "user"


BOTH = ("project", "mode")

GROUPS: tuple[tuple[str, tuple[Link, ...]], ...] = (
    (
        "Memory",
        (
            Link("", "Home", "home"),
            Link("ask", "Ask", "ask", ("project",)),
            Link("memories", "Memories", "memories", BOTH),
            Link("conversations", "Conversations", "conversations", BOTH),
            Link("map", "Map", "map", BOTH),
            Link("files", "Files", "files", ("project",)),
            Link("add", "Add and import", "add", of="write"),
        ),
    ),
    (
        "Structure",
        (
            Link("modes", "Modes", "modes", ("project",)),
            Link("categories", "Categories", "categories", ("project",)),
            Link("intention", "Intention", "intention", ("project",)),
        ),
    ),
    (
        "Work",
        (
            Link("health", "Health and jobs", "health"),
            Link("consolidations", "Consolidations", "consolidations", ("project",)),
            Link("runs", "Runs", "runs", ("project",)),
            Link("dead-letters", "Dead letters", "dead-letters", of="all"),
            Link("pipelines", "Pipelines", "pipelines", of="operate"),
        ),
    ),
    (
        "Access",
        (
            Link("users", "Users", "users", of="everyone"),
            Link("keys", "Keys", "keys", of="operate"),
            Link("settings", "Settings", "settings", of="operate"),
            Link("export", "Export", "export", ("project",)),
            Link("forget", "Forget", "forget", ("project",), of="forget"),
        ),
    ),
)


@dataclass(frozen=True)
class Header:
    """The head of a page. `modes` has the number of memories by mode, most first."""

    title: str
    active: str
    groups: tuple[tuple[str, tuple[Link, ...]], ...] = ()
    picks: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    modes: tuple[tuple[str, int], ...] = ()
    key: str | None = None


class Pages:
    """Builds views and renders pages. `service` is that of HTTP and MCP too, so that its checks hold here."""

    def __init__(self, service: MemoryService, scope_fields: frozenset[str], *, is_signed_in: bool) -> None:
        self.service = service
        self.flashes = Flashes()
        self._scope_fields = scope_fields
        self.is_signed_in = is_signed_in
        self._hues: dict[str, dict[str, int]] = {}
        self._states: dict[tuple[str, str], tuple[float, Json]] = {}

    def view(self, request: Request) -> View:
        """Return the view of a request. Raises Refused."""
        view = view_of(request, self.service, self._scope_fields)
        if len(self._hues) > MAX_COLOURED_USERS:
            self._hues.clear()
        token = request.cookies.get(COOKIE, "")
        flash = self.flashes.find(token) if token else None
        hues = self._hues.setdefault(view.user or "", {})
        return replace(view, hues=hues, flash=None if flash is None else replace(flash, token=token))

    async def state(self, view: View) -> Json:
        """Return the service's health for the chosen user, some seconds old; empty if it does not answer."""
        known = self._states.get((view.user or "", view.project or ""))
        if known is not None and known[0] > time.monotonic():
            return known[1]
        call = view.call(PICKER_TIMEOUT_S)
        state: Json = await _or(self.service.operations.run(HEALTH, call, view.write_scope), {})
        if len(self._states) > MAX_COLOURED_USERS:
            self._states.clear()
        self._states[view.user or "", view.project or ""] = time.monotonic() + STATE_S, state
        return state

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
        """Return a page, with the notice of the action before it. Raises Refused."""
        return self.page(view, template, await self._header(view, title, active), **values)

    def page(self, view: View, template: str, header: Header, status: int = 200, **values: Any) -> HTMLResponse:
        text = self.text(view, template, header=header, is_signed_in=self.is_signed_in, **values)
        form = view.flash.form if view.flash else None
        if form is not None:
            text = refilled(text, form.action, form.fields, form.refused.field)
        answer = HTMLResponse(text, status)
        if view.flash is not None:
            answer.delete_cookie(COOKIE, path=PAGES)
        return answer

    def part(self, view: View, template: str, **values: Any) -> HTMLResponse:
        """Return a part that replaces an older one in its page."""
        return HTMLResponse(self.text(view, template, **values))

    def text(self, view: View, template: str, **values: Any) -> str:
        """Return the text of a part, for events of a stream."""
        return rendered(template, {"view": view, **values})

    def bare(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page without a view, such as the one to sign in."""
        return HTMLResponse(rendered(template, values), status)

    def done(self, address: str, notice: str, *, undo: Undo | None = None, secret: str | None = None) -> Response:
        """Redirect to the page that shows the result of an action, with a notice."""
        return self.flashes.keep(see(address), Flash(notice, undo, secret=secret))

    def refused(self, address: str, action: str, form: Form | None, refused: Refused) -> Response:
        """Redirect to the page of a refused form, with its input and the error."""
        fields = {} if form is None else form.fields
        return self.flashes.keep(see(address), Flash(form=RefusedForm(action, fields, refused)))

    def bare_header(self, view: View, title: str, active: str = "-") -> Header:
        """Return the head of a page without pickers; needs no requests."""
        shown = ((name, tuple(link for link in links if self._is_shown(view, link))) for name, links in GROUPS)
        key = view.caller.name if self.is_signed_in else None
        return Header(title, active, groups=tuple(group for group in shown if group[1]), key=key)

    async def _header(self, view: View, title: str, active: str) -> Header:
        """Load the choices of the pickers, and the colours of modes. Raises Refused."""
        header = self.bare_header(view, title, active)
        if view.user is None:
            return header
        call = view.call(PICKER_TIMEOUT_S)
        known = view.projects
        projects, declared, boundary = await asyncio.gather(
            _or(projects_of(self.service, view, call) if known is None else _known(known), frozenset[str]()),
            _or(self.service.operations.run(LIST_MODES, call, view.write_scope), {}),
            boundary_of(self.service, view),
        )
        if declared:
            named = [(mode.get("created_at") or "", mode["name"]) for mode in declared["modes"]]
            view.hues.clear()
            view.hues.update({name: number for number, (_, name) in enumerate(sorted(named))})
        counts = dict.fromkeys((*view.hues, *([view.mode] if view.mode else [])), 0)
        counts |= {name: int(mode["memories"]) for name, mode in (boundary or {}).get("modes", {}).items()}
        ordered = sorted(counts.items(), key=lambda mode_and_count: (-mode_and_count[1], mode_and_count[0]))
        picks = next((link.picks for _, links in GROUPS for link in links if link.page == active), ())
        return replace(
            header,
            picks=picks,
            projects=tuple(sorted(projects | ({view.project} if view.project else set()))),
            modes=tuple(ordered),
        )

    def _is_shown(self, view: View, link: Link) -> bool:
        if link.of == "all" or (link.page == "" and view.user is None):
            return True
        if link.of == "operate":
            return view.may("operate") and (link.page != "keys" or self.is_signed_in)
        if link.of == "everyone":
            return view.caller.own_user is None
        if view.user is None:
            return False
        return link.of == "user" or (view.may_forget if link.of == "forget" else view.may("write"))


def see(address: str) -> Response:
    """Redirect to the page that shows the result of an action."""
    return RedirectResponse(address, 303)


async def projects_of(service: MemoryService, view: View, call: Call) -> frozenset[str]:
    """Return all projects of the user. Raises Refused."""
    scope = {**view.read_scope, PROJECT: ANY_VALUE}
    listed = await service.operations.run(LIST_PROJECTS, call, scope, {"limit": MAX_PROJECTS})
    return frozenset(map(itemgetter(PROJECT), map(itemgetter("scope"), listed["items"])))


async def boundary_of(service: MemoryService, view: View) -> Json | None:
    """Return the numbers of the chosen user; None if only the worker has them, and it does not answer."""
    return await _or(service.users.boundary(view.call(PICKER_TIMEOUT_S)), None)


async def or_too_slow(listed: Awaitable[Json]) -> Json:
    """Return a list; one without a total if it took too long: its page keeps the filters, and says so."""
    try:
        return await listed
    except Refused as refused:
        if refused.code != "timeout":
            raise
        return {"items": [], "next": None, "total": None}


async def _known(names: frozenset[str]) -> frozenset[str]:
    return names


async def _or(asked: Awaitable[AnswerT], otherwise: OtherT) -> AnswerT | OtherT:
    """Return an answer; another value if the worker does not answer, or the caller may not ask."""
    try:
        return await asked
    except Refused as refused:
        if refused.code not in ("unavailable", "timeout", "not_allowed"):
            raise
        return otherwise


@contextmanager
def worker_may_be_away() -> Iterator[None]:
    """Ignore a worker that does not answer: the page shows the gateway's own data."""
    try:
        yield
    except Refused as refused:
        if refused.code not in ("unavailable", "timeout"):
            raise
