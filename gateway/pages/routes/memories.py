"""Memories: the list, and one memory."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages
from gateway.pages.view import PAGES

FILTERS = ("types", "role", "since", "until", "contains", "embedding_status", "conversation_id", "order", "cursor")
"""Parameters that narrow the list."""


def memory_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        fields = {name: view.query[name] for name in FILTERS if view.query.get(name)}
        listed = await pages.service.reads.list(
            view.call(), "memories", view.selector, {**fields, "mode": view.mode or "*"}
        )
        return await pages.render(view, "memories.html", "Memories", "memories", listed=listed)

    return [Route(f"{PAGES}/memories", show)]
