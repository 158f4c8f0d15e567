"""Forget a project, or a user in all projects, after the name was typed on a page with the counts."""

from collections.abc import Sequence
from typing import Any

from modestream_client.hits import ListResult
from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES, Operation
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages, see
from gateway.pages.requests import PAGES, View, read_form
from gateway.service.failures import Refused

WAIT_S = 60.0
"""Timeout of forgetting: a user may have tens of thousands of memories."""


def forget_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes. They forget the picked project, or without one the user."""

    async def ask(request: Request) -> Response:
        return await _question(pages, pages.view(request))

    async def forget(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        _require_manage(view)
        if form.optional("typed") != (view.project or view.user):
            return await _question(pages, view, "The name does not match. Nothing was forgotten.")
        selection = {"user": True} if view.project is None else {"project": True}
        done = await pages.service.memories.forget_all(view.call(WAIT_S), view.write_scope, selection)
        return see(view.address(project=None, mode=None, notice="forgotten", count=done["forgotten"]))

    path = f"{PAGES}/forget"
    return [Route(path, ask, methods=["GET"]), Route(path, forget, methods=["POST"])]


async def _question(pages: Pages, view: View, error: str | None = None) -> Response:
    """Ask for confirmation. Raises Refused, `not_allowed`."""
    _require_manage(view)
    return await pages.render(
        view,
        "forget.html",
        "Forget a project" if view.project else "Forget a user",
        "",
        turns=await _count(pages, view, LIST_MEMORIES),
        conversations=await _count(pages, view, LIST_CONVERSATIONS),
        error=error,
    )


async def _count(pages: Pages, view: View, listed: Operation[ListResult]) -> int:
    """Return the number of entries, superseded ones included."""
    scope = view.read_scope if view.project is None else view.write_scope
    fields: dict[str, Any] = {"mode": "*", "include_superseded": True, "limit": 1}
    return int((await pages.service.operations.run(listed, view.call(), scope, fields))["total"])


def _require_manage(view: View) -> None:
    view.call()
    if not view.may_forget:
        what = "a user" if view.project is None else "this project"
        raise Refused("not_allowed", f"your key may not forget {what}")
