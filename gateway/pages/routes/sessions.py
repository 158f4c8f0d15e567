"""Signing in and out."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages
from gateway.pages.sign_in import SIGN_IN, SignIn
from gateway.pages.view import PAGES
from gateway.service.failures import Refused


def session_pages(pages: Pages, sign_in: SignIn) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        wanted = request.query_params.get("next", "")
        return pages.bare(
            "sign_in.html", next=wanted, is_needed=sign_in.is_needed, is_open=sign_in.is_open, refused=None
        )

    async def open_session(request: Request) -> Response:
        try:
            return await sign_in.open_session(request)
        except Refused as refused:
            status = 429 if refused.code == "too_many_requests" else 401
            return pages.bare("sign_in.html", status, next="", is_needed=True, is_open=False, refused=refused)

    return [
        Route(SIGN_IN, show, methods=["GET"]),
        Route(SIGN_IN, open_session, methods=["POST"]),
        Route(f"{PAGES}/sign-out", sign_in.close_session, methods=["POST"]),
    ]
