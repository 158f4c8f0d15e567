"""Every error of a page as a page: what happened, what to do, and the request's id for the operator."""

import logging
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway.http.problems import CODES_OF_HTTP, SENTENCES_OF_HTTP, STATUS_OF, TITLES, request_id_of
from gateway.pages.rendering import Renderer
from gateway.pages.view import PAGES
from gateway.service.failures import Refused, failed

log = logging.getLogger(__name__)


class ErrorPages:
    """Answers what a page raises."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    async def on_refused(self, request: Request, error: Exception) -> Response:
        """Show a refusal; without a session, lead to the page that opens one."""
        assert isinstance(error, Refused)
        if error.code == "unauthenticated" and request.method == "GET" and not _is_part(request):
            wanted = request.scope["path"] + ("?" + request.url.query if request.url.query else "")
            return RedirectResponse(f"{PAGES}/sign-in?" + urlencode({"next": wanted}), 303)
        return self._page(request, error, 404 if error.names_resource else STATUS_OF[error.code])

    async def on_http(self, request: Request, error: Exception) -> Response:
        """Show an error of the framework, such as a path that is none."""
        assert isinstance(error, HTTPException)
        code = CODES_OF_HTTP.get(error.status_code, "invalid_value")
        sentence = SENTENCES_OF_HTTP.get(error.status_code, "this request is not valid here")
        return self._page(request, Refused(code, sentence), error.status_code)  # type: ignore[arg-type]

    async def on_defect(self, request: Request, error: Exception) -> Response:
        """Show that a page failed; the log has the reason."""
        log.error("request %s failed", request_id_of(request), exc_info=error)
        return self._page(request, failed(), HTTPStatus.BAD_GATEWAY)

    def _page(self, request: Request, refused: Refused, status: int) -> Response:
        values = {"refused": refused, "title": TITLES[refused.code], "request_id": request_id_of(request)}
        template = "parts/error.html" if _is_part(request) else "error.html"
        return HTMLResponse(self._renderer.text(template, values), status)


def _is_part(request: Request) -> bool:
    """True for a request of a script, which replaces a part of its page."""
    return "hx-request" in request.headers or request.headers.get("accept", "").startswith("application/json")
