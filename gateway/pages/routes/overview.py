"""The first page: the deployment with its users, or one user."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages
from gateway.pages.view import PAGES
from gateway.service.calls import Call

USERS_SHOWN = 50
"""Users of one page."""


def overview_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        if view.user is not None:
            boundary = pages.service.users.boundary(view.caller, view.user)
            return await pages.render(view, "user.html", view.user, "", boundary=boundary)
        listed = pages.service.users.list(
            view.caller, view.query.get("prefix", ""), USERS_SHOWN, view.query.get("cursor") or None
        )
        call = Call.within(view.caller, "", request_id=view.request_id)
        totals = pages.service.users.totals(call.caller)
        return await pages.render(view, "deployment.html", "Overview", "", users=listed, totals=totals)

    return [Route(PAGES, show)]
