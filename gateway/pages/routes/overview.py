"""Home: a user's recent memory, or all users; without any, how to add a first memory."""

import asyncio
from collections.abc import Sequence

from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import speaker_of
from gateway.pages.live import live_answer
from gateway.pages.pages import Pages, boundary_of, see, worker_may_be_away
from gateway.pages.requests import PAGES, View
from gateway.service.access import may_read_project
from gateway.service.calls import Call, Json

USERS_SHOWN = 50

LATEST = 6
"""Conversations and memories of the home page."""

WAIT_S = 3.0
"""Timeout of a request to the worker; without an answer the page shows the gateway's own data."""


def overview_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        view = pages.view(request)
        return await (_users(pages, view) if view.user is None else _home(pages, view))

    async def show_users(request: Request) -> Response:
        return await _users(pages, pages.view(request))

    async def listen(request: Request) -> Response:
        view = pages.view(request)

        async def render() -> str:
            if view.user is None:
                return pages.text(view, "parts/totals.html", totals=pages.service.users.totals(view.caller))
            return pages.text(view, "parts/figures.html", boundary=await boundary_of(pages.service, view))

        return live_answer(render, pages.service.users.boundaries)

    return [Route(PAGES, show), Route(f"{PAGES}/users", show_users), Route(f"{PAGES}/live/events", listen)]


async def _home(pages: Pages, view: View) -> Response:
    async def latest(what: object) -> list[Json]:
        fields = {"mode": "*", "limit": LATEST}
        with worker_may_be_away():
            listed = await pages.service.operations.run(what, view.call(WAIT_S), view.read_scope, fields)  # type: ignore[arg-type]
            return list(listed["items"])
        return []

    conversations, memories, boundary = await asyncio.gather(
        latest(LIST_CONVERSATIONS), latest(LIST_MEMORIES), boundary_of(pages.service, view)
    )
    return await pages.render(
        view,
        "home.html",
        view.user or "",
        "",
        conversations=conversations,
        memories=memories,
        boundary=boundary,
        speaker_of=speaker_of,
        is_whole=may_read_project(view.caller, view.user or "", None),
    )


async def _users(pages: Pages, view: View) -> Response:
    users = pages.service.users
    call = Call.within(view.caller, "", WAIT_S, view.request_id)
    page = (view.query.get("prefix", ""), USERS_SHOWN, view.query.get("cursor") or None)
    listed = None
    with worker_may_be_away():
        listed = await users.list(call, *page)
    listed = listed or await users.list(call, *page, asks_worker=False)
    totals = users.totals(view.caller)
    if not totals["boundaries"] and not view.query.get("prefix"):
        return see(view.address("start"))
    name_of = pages.service.boundary_fields.name
    return await pages.render(view, "users.html", "Users", "users", totals=totals, users=listed, name_of=name_of)
