"""All pages as one application at `/admin`, with its own error pages and headers."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlencode

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

from gateway.http.problems import CODES_OF_HTTP, SENTENCES_OF_HTTP, STATUS_OF, TITLES, request_id_of
from gateway.http.shapes import scope_fields_of
from gateway.pages.pages import Pages, rendered, serve_asset
from gateway.pages.requests import PAGES
from gateway.pages.routes.ask import ask_pages
from gateway.pages.routes.conversations import conversation_pages
from gateway.pages.routes.dead_letters import dead_letter_pages
from gateway.pages.routes.map import map_pages
from gateway.pages.routes.memories import memory_pages, one_memory_pages
from gateway.pages.routes.modes import mode_pages
from gateway.pages.routes.overview import overview_pages
from gateway.pages.routes.project import category_pages, consolidation_pages, forget_pages, intention_pages
from gateway.pages.routes.runs import run_pages
from gateway.pages.sign_in import SignIn, session_pages
from gateway.service.failures import Refused, failed
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


def page_routes(service: MemoryService, scope: type[Scope], sign_in: SignIn) -> Sequence[BaseRoute]:
    """Return the routes of the window; `/` redirects there."""
    pages = Pages(service, scope_fields_of(scope), is_signed_in=sign_in.is_needed)
    app = Starlette(
        routes=[
            Route(PAGES + "/static/{digest}/{name:path}", serve_asset),
            *session_pages(pages, sign_in),
            *overview_pages(pages),
            *memory_pages(pages),
            *ask_pages(pages),
            *mode_pages(pages),
            *category_pages(pages),
            *intention_pages(pages),
            *consolidation_pages(pages),
            *one_memory_pages(pages),
            *conversation_pages(pages),
            *map_pages(pages),
            *forget_pages(pages),
            *dead_letter_pages(pages),
            *run_pages(pages),
        ],
        middleware=[Middleware(PageHeaders), Middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM)],
        exception_handlers={Refused: show_refused, HTTPException: show_http_error, Exception: show_defect},
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


async def show_refused(request: Request, error: Exception) -> Response:
    """Show a refusal; without a session, redirect to the sign-in page."""
    assert isinstance(error, Refused)
    if error.code == "unauthenticated" and request.method == "GET" and not _is_part(request):
        wanted = request.scope["path"] + ("?" + request.url.query if request.url.query else "")
        return RedirectResponse(f"{PAGES}/sign-in?" + urlencode({"next": wanted}), 303)
    return _error_page(request, error, 404 if error.names_resource else STATUS_OF[error.code])


async def show_http_error(request: Request, error: Exception) -> Response:
    """Show an error of the framework, such as an unknown path."""
    assert isinstance(error, HTTPException)
    code = CODES_OF_HTTP.get(error.status_code, "invalid_value")
    sentence = SENTENCES_OF_HTTP.get(error.status_code, "this request is not valid here")
    return _error_page(request, Refused(code, sentence), error.status_code)  # type: ignore[arg-type]


async def show_defect(request: Request, error: Exception) -> Response:
    """Show that a page failed, and log the reason."""
    log.error("request %s failed", request_id_of(request), exc_info=error)
    return _error_page(request, failed(), HTTPStatus.BAD_GATEWAY)


def _error_page(request: Request, refused: Refused, status: int) -> Response:
    """Return what happened, what to do, and the request's id for the operator."""
    values = {"refused": refused, "title": TITLES[refused.code], "request_id": request_id_of(request)}
    template = "parts/error.html" if _is_part(request) else "error.html"
    return HTMLResponse(rendered(template, values), status)


def _is_part(request: Request) -> bool:
    """True if a script made the request, to replace a part of its page."""
    return "hx-request" in request.headers or request.headers.get("accept", "").startswith("application/json")
