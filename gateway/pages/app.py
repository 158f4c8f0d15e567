"""All pages as one application at `/admin`, with its own error pages and headers."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from gateway.connection_settings import SettingInForce
from gateway.http.problems import CODES_OF_HTTP, SENTENCES_OF_HTTP, STATUS_OF, TITLES, request_id_of
from gateway.http.shapes import scope_fields_of
from gateway.pages.pages import Pages, rendered, serve_asset
from gateway.pages.requests import PAGES, read_form
from gateway.pages.routes.access import export_pages, key_pages, settings_pages
from gateway.pages.routes.ask import ask_pages
from gateway.pages.routes.conversations import conversation_pages
from gateway.pages.routes.dead_letters import dead_letter_pages
from gateway.pages.routes.files import file_pages
from gateway.pages.routes.health import health_pages
from gateway.pages.routes.map import map_pages
from gateway.pages.routes.memories import memory_pages, one_memory_pages
from gateway.pages.routes.modes import mode_pages
from gateway.pages.routes.overview import overview_pages
from gateway.pages.routes.pipelines import pipeline_pages
from gateway.pages.routes.project import category_pages, consolidation_pages, forget_pages, intention_pages
from gateway.pages.routes.runs import context_pages, run_pages
from gateway.pages.routes.start import import_pages, start_pages
from gateway.pages.sign_in import SignIn, session_pages
from gateway.service.calls import Refused, failed
from gateway.service.service import MemoryService
from schemas.scopes import Scope

COMPRESSED_FROM = 1_000
"""Smallest answer that is compressed, in bytes."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer, unless the answer sets its own: a static file may be cached."""

log = logging.getLogger(__name__)


def page_routes(
    service: MemoryService, scope: type[Scope], sign_in: SignIn, settings: Sequence[SettingInForce] = ()
) -> Sequence[BaseRoute]:
    """Return the routes of the window; `/` redirects there. `settings` are those of the gateway."""
    pages = Pages(service, scope_fields_of(scope), is_signed_in=sign_in.is_needed)
    errors = ErrorPages(pages)
    app = Starlette(
        routes=[
            Route(PAGES + "/static/{digest}/{name:path}", serve_asset),
            *session_pages(pages, sign_in),
            *overview_pages(pages),
            *start_pages(pages),
            *import_pages(pages),
            *health_pages(pages),
            *memory_pages(pages),
            *ask_pages(pages),
            *context_pages(pages),
            *mode_pages(pages),
            *category_pages(pages),
            *intention_pages(pages),
            *consolidation_pages(pages),
            *file_pages(pages),
            *one_memory_pages(pages),
            *conversation_pages(pages),
            *map_pages(pages),
            *forget_pages(pages),
            *dead_letter_pages(pages),
            *run_pages(pages),
            *export_pages(pages),
            *pipeline_pages(pages),
            *key_pages(pages, sign_in),
            *settings_pages(pages, settings),
        ],
        middleware=[Middleware(PageHeaders), Middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM)],
        exception_handlers={Refused: errors.refused, HTTPException: errors.http_error, Exception: errors.defect},
    )
    app.router.redirect_slashes = False

    async def to_pages(_: Request) -> Response:
        return RedirectResponse(PAGES, 307)

    return [Route("/", to_pages), Route(PAGES, app), Route(PAGES + "/{path:path}", app)]


class PageHeaders:
    """ASGI middleware: adds `HEADERS`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class ErrorPages:
    """Shows refusals: the form again with its input, else a page with a head and links to continue."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def refused(self, request: Request, error: Exception) -> Response:
        """Show a refusal; without a session, redirect to the sign-in page."""
        assert isinstance(error, Refused)
        if error.code == "unauthenticated" and not _is_part(request):
            wanted = request.scope["path"] + ("?" + request.url.query if request.url.query else "")
            wanted = wanted if request.method == "GET" else PAGES
            return RedirectResponse(f"{PAGES}/sign-in?" + urlencode({"next": wanted}), 303)
        came_from = _own_referrer(request)
        if request.method == "POST" and came_from is not None:
            with suppress(Refused):
                return self._pages.refused(came_from, request.scope["path"], await read_form(request), error)
            return self._pages.refused(came_from, request.scope["path"], None, error)
        return self._page(request, error, 404 if error.names_resource else STATUS_OF[error.code])

    async def http_error(self, request: Request, error: Exception) -> Response:
        """Show an error of the framework, such as an unknown path."""
        assert isinstance(error, HTTPException)
        code = CODES_OF_HTTP.get(error.status_code, "invalid_value")
        sentence = SENTENCES_OF_HTTP.get(error.status_code, "this request is not valid here")
        return self._page(request, Refused(code, sentence), error.status_code)  # type: ignore[arg-type]

    async def defect(self, request: Request, error: Exception) -> Response:
        """Show that a page failed, and log the reason."""
        log.error("request %s failed", request_id_of(request), exc_info=error)
        return self._page(request, failed(), HTTPStatus.BAD_GATEWAY)

    def _page(self, request: Request, refused: Refused, status: int) -> Response:
        """Return the problem, the remedy, and the request's id for the operator."""
        title = TITLES[refused.code]
        again = str(request.url) if refused.code in ("timeout", "unavailable") and request.method == "GET" else None
        values = {"refused": refused, "title": title, "request_id": request_id_of(request), "again": again}
        if _is_part(request):
            return HTMLResponse(rendered("parts/error.html", values), status)
        try:
            view = self._pages.view(request)
        except Refused:
            return HTMLResponse(rendered("error_bare.html", values), status)
        return self._pages.page(view, "error.html", self._pages.bare_header(view, title), status, **values)


def _own_referrer(request: Request) -> str | None:
    """Return the page of ours that a request came from, without its origin."""
    came_from = urlsplit(request.headers.get("referer", ""))
    if came_from.netloc != request.headers.get("host") or not f"{came_from.path}/".startswith(f"{PAGES}/"):
        return None
    return came_from.path + (f"?{came_from.query}" if came_from.query else "")


def _is_part(request: Request) -> bool:
    """True if a script made the request, to replace a part of its page."""
    return "hx-request" in request.headers or request.headers.get("accept", "").startswith("application/json")
