"""The routes of all pages, as one application at `/admin`, with its own errors and headers."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.http.shapes import scope_fields_of
from gateway.pages.assets import serve_asset
from gateway.pages.errors import ErrorPages
from gateway.pages.headers import PageHeaders
from gateway.pages.pages import Pages
from gateway.pages.rendering import Renderer
from gateway.pages.routes.ask import ask_pages
from gateway.pages.routes.categories import category_pages
from gateway.pages.routes.consolidations import consolidation_pages
from gateway.pages.routes.conversations import conversation_pages
from gateway.pages.routes.dead_letters import dead_letter_pages
from gateway.pages.routes.forget import forget_pages
from gateway.pages.routes.intention import intention_pages
from gateway.pages.routes.map import map_pages
from gateway.pages.routes.memories import memory_pages
from gateway.pages.routes.memory import one_memory_pages
from gateway.pages.routes.modes import mode_pages
from gateway.pages.routes.overview import overview_pages
from gateway.pages.routes.runs import run_pages
from gateway.pages.routes.sessions import session_pages
from gateway.pages.sign_in import SignIn
from gateway.pages.view import PAGES
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from schemas.scopes import Scope

COMPRESSED_FROM = 1_000
"""Bytes from which an answer is compressed."""


def page_routes(service: MemoryService, scope: type[Scope], sign_in: SignIn) -> Sequence[BaseRoute]:
    """Return the routes of the window; `/` leads there."""
    renderer = Renderer()
    pages = Pages(service, renderer, scope_fields_of(scope), is_signed_in=sign_in.is_needed)
    errors = ErrorPages(renderer)
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
        exception_handlers={Refused: errors.on_refused, HTTPException: errors.on_http, Exception: errors.on_defect},
    )
    app.router.redirect_slashes = False
    return [Route("/", _to_pages), Route(PAGES, app), Route(PAGES + "/{path:path}", app)]


async def _to_pages(_: Request) -> Response:
    return RedirectResponse(PAGES, 307)
