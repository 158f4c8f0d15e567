"""The map: clouds as a page, their points and suggested modes for its script, and moving what was selected."""

import asyncio
from collections.abc import Awaitable, Sequence

from modestream_client.operations import DECLARE_MODE, GET_MAP, LIST_MEMORIES, LIST_MODES, SUGGEST_MODES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import Form, read_form
from gateway.pages.map_columns import encode_map
from gateway.pages.pages import Pages, see
from gateway.pages.view import PAGES, View
from gateway.service.failures import Refused
from gateway.service.wire import Json
from schemas.scopes import ANY_VALUE

MAX_POINTS = 20_000
"""Points that the page asks for: what one answer may have (docs/contract.md)."""

LISTED_WITHOUT_SCRIPT = 50
"""Memories in the table before its script fills it with what is in view."""

MOVE_WAIT_S = 60.0
"""Seconds that moving a selection may take: 500 memories take about one."""

COLOURS = ("conversation", "type", "age")
"""What points can be coloured by, the usual one first."""


def map_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        listed, modes = await asyncio.gather(_newest(pages, view), _modes(pages, view))
        colour = view.query.get("colour", "")
        return await pages.render(
            view,
            "map.html",
            "Map",
            "map",
            listed=listed,
            modes=modes,
            colours=COLOURS,
            colour=colour if colour in COLOURS else COLOURS[0],
            max_points=MAX_POINTS,
        )

    async def points(request: Request) -> Response:
        view = pages.view(request)
        fields = {"mode": view.mode or ANY_VALUE, "limit": MAX_POINTS}
        result = await pages.service.operations.run(GET_MAP, view.call(), view.selector, fields)
        is_compressed = "gzip" in request.headers.get("accept-encoding", "")
        body = await asyncio.to_thread(encode_map, result, compressed=is_compressed)
        headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if is_compressed else {})}
        return Response(body, media_type="application/json", headers=headers)

    async def suggestions(request: Request) -> Response:
        view = pages.view(request)
        found = await _if_allowed(pages.service.operations.run(SUGGEST_MODES, view.call(), view.place))
        shown = [one for one in (found or {}).get("suggestions", ()) if view.mode in (None, one["in_mode"])]
        return pages.part(
            view, "parts/map_suggestions.html", suggestions=shown, modes=shown and await _modes(pages, view)
        )

    async def move(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        return await _move(pages, view, form, form.text("to"))

    async def declare(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        name, embedder = form.text("name"), form.text("embedder")
        _selected(form)
        description = form.optional("description")
        fields = {"name": name, "embedder": embedder} | ({"description": description} if description else {})
        await pages.service.operations.run(DECLARE_MODE, view.call(), view.place, fields)
        return await _move(pages, view, form, name)

    return [
        Route(f"{PAGES}/map", show),
        Route(f"{PAGES}/map/points", points),
        Route(f"{PAGES}/map/suggestions", suggestions),
        Route(f"{PAGES}/map/move", move, methods=["POST"]),
        Route(f"{PAGES}/map/declare", declare, methods=["POST"]),
    ]


async def _move(pages: Pages, view: View, form: Form, mode: str) -> Response:
    """Move what a form has selected; lead back to the map, which shows the mode that it is in now."""
    by_project = {view.project or ANY_VALUE: _selected(form)}
    moved = (await pages.service.memories.move_all(view.call(MOVE_WAIT_S), by_project, mode))["moved"]
    shown = view.mode and mode
    return see(view.address("map", mode=shown, notice="moved", count=moved, name=mode, colour=view.query.get("colour")))


def _selected(form: Form) -> list[str]:
    """Return the ids that a form has selected, each once: ticked rows, or one field with all. Raises Refused."""
    ids = list(dict.fromkeys((*form.all("memory_id"), *(form.optional("memory_ids") or "").split())))
    if not ids:
        raise Refused("invalid_value", "select at least one memory first", "memory_ids")
    return ids


async def _newest(pages: Pages, view: View) -> Json:
    fields = {"mode": view.mode or ANY_VALUE, "limit": LISTED_WITHOUT_SCRIPT}
    return await pages.service.operations.run(LIST_MEMORIES, view.call(), view.selector, fields)


async def _modes(pages: Pages, view: View) -> Json | None:
    """Return the modes that memories can be moved to, and embedders; None where the caller may not see them here."""
    return await _if_allowed(pages.service.operations.run(LIST_MODES, view.call(), view.place))


async def _if_allowed(answer: Awaitable[Json]) -> Json | None:
    """Return an answer; None where the caller's grants are for other projects than this one."""
    try:
        return await answer
    except Refused as refused:
        if refused.code != "not_allowed":
            raise
        return None
