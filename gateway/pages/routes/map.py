"""The map: the page, points and suggested modes for its script, and moving a selection."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
from modestream_client.operations import DECLARE_MODE, GET_MAP, LIST_MEMORIES, LIST_MODES, SUGGEST_MODES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import plural, type_name
from gateway.pages.pages import Pages, accepts_gzip, scripts_of
from gateway.pages.requests import PAGES, Form, View, read_form
from gateway.pages.texts import marked_text
from gateway.service.calls import Json, Refused
from schemas.messages.retrieval import MAX_POINT_TEXT_CHARS
from schemas.scopes import ANY_VALUE

MAX_POINTS = 20_000
"""Points that the page requests at once: the limit of one answer (docs/contract.md). It reads more by spans of time."""

FIRST_POINTS = 1_000
"""Points of the first picture: a sample with every conversation."""

LISTED_WITHOUT_SCRIPT = 25
"""Rows of the table without scripts; with them, it lists the points in view."""

MAP_WAIT_S = 45.0
"""Timeout of the points: with many memories, they must be laid out first."""

MOVE_WAIT_S = 60.0
"""Timeout of a move: 500 memories take about a second."""

COLOURS = ("group", "conversation", "type", "age")
"""Choices of colour, the default first."""

COMPRESSION = 6
"""Level of gzip: 20,000 points shrink to a fifth in 0.1 s; higher levels save 3 % more in twice the time."""

CLOUD_FIELDS = ("mode", "space", "method", "made_at", "settled", "left_out")
"""Fields of a cloud other than its points."""


def map_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        view = pages.view(request)
        fields = {"mode": view.mode or ANY_VALUE, "limit": LISTED_WITHOUT_SCRIPT}
        listed, modes = await asyncio.gather(
            pages.service.operations.run(LIST_MEMORIES, view.call(), view.read_scope, fields), _modes(pages, view)
        )
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
            first_points=FIRST_POINTS,
            modules=scripts_of("map"),
        )

    async def points(request: Request) -> Response:
        view = pages.view(request)
        limit = min(MAX_POINTS, int(view.query["limit"])) if view.query.get("limit", "").isdecimal() else MAX_POINTS
        span = {name: view.query[name] for name in ("since", "until") if view.query.get(name)}
        fields = {"mode": view.mode or ANY_VALUE, "limit": limit, **span}
        result = await pages.service.operations.run(GET_MAP, view.call(MAP_WAIT_S), view.read_scope, fields)
        is_compressed = accepts_gzip(request)
        body = await asyncio.to_thread(_encode_map, result, view.hue, compressed=is_compressed)
        headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if is_compressed else {})}
        return Response(body, media_type="application/json", headers=headers)

    async def suggest(request: Request) -> Response:
        view = pages.view(request)
        answer = await _if_allowed(pages.service.operations.run(SUGGEST_MODES, view.call(), view.write_scope)) or {}
        suggestions = [each for each in answer.get("suggestions", ()) if view.mode in (None, each["in_mode"])]
        modes = suggestions and await _modes(pages, view)
        return pages.part(
            view, "parts/map_suggestions.html", suggestions=suggestions, modes=modes, marked_text=marked_text
        )

    async def move(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        return await _move(pages, view, form, form.text("to"))

    async def declare(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        name, embedder = form.text("name"), form.text("embedder")
        _selected(form)  # Refuses before anything is declared.
        description = form.optional("description")
        fields = {"name": name, "embedder": embedder} | ({"description": description} if description else {})
        await pages.service.operations.run(DECLARE_MODE, view.call(), view.write_scope, fields)
        return await _move(pages, view, form, name)

    return [
        Route(f"{PAGES}/map", show),
        Route(f"{PAGES}/map/points", points),
        Route(f"{PAGES}/map/suggestions", suggest),
        Route(f"{PAGES}/map/move", move, methods=["POST"]),
        Route(f"{PAGES}/map/declare", declare, methods=["POST"]),
    ]


async def _move(pages: Pages, view: View, form: Form, mode: str) -> Response:
    """Move the selected memories; redirect to the map, of their new mode if one was picked."""
    selected = _selected(form)
    ids = [memory_id for ids_of in selected.values() for memory_id in ids_of]
    project = view.project or ANY_VALUE
    moved = (await pages.service.memories.move_all(view.call(MOVE_WAIT_S), {project: ids}, mode))["moved"]

    async def undo(by: View) -> Response:
        call, back = replace(view, caller=by.caller).call(MOVE_WAIT_S), 0
        for former, ids_of in selected.items():
            back += (await pages.service.memories.move_all(call, {project: ids_of}, former))["moved"]
        return pages.done(view.address("map"), f"Moved {plural(back, 'memory', 'memories')} back.")

    address = view.address("map", mode=view.mode and mode, colour=view.query.get("colour"))
    notice = f"Moved {plural(moved, 'memory', 'memories')} to {mode}."
    return pages.done(address, notice, undo=undo if "" not in selected else None)


def _selected(form: Form) -> dict[str, list[str]]:
    """Return the selected ids by their mode: of ticked rows, or of one field, in which `mode=` is before its ids.

    Rows that are ticked without scripts have no mode, `""`. Raises Refused.
    """
    selected: dict[str, list[str]] = {"": form.all("memory_id")} if form.all("memory_id") else {}
    mode, seen = "", set(form.all("memory_id"))
    for word in (form.optional("memory_ids") or "").split():
        if word.endswith("="):
            mode = word[:-1]
        elif word not in seen:
            seen.add(word)
            selected.setdefault(mode, []).append(word)
    if not selected:
        raise Refused("invalid_value", "select at least one memory first", "memory_ids")
    return selected


async def _modes(pages: Pages, view: View) -> Json | None:
    """Return the modes and embedders of the project; None if the caller may not see them."""
    return await _if_allowed(pages.service.operations.run(LIST_MODES, view.call(), view.write_scope))


async def _if_allowed(answer: Awaitable[Json]) -> Json | None:
    """Return an answer; None if the caller has no grant for this project."""
    try:
        return await answer
    except Refused as refused:
        if refused.code != "not_allowed":
            raise
        return None


def _encode_map(result: Mapping[str, Any], hue: Callable[[str], str], *, compressed: bool) -> bytes:
    """Return an answer of `map.v1` as compact JSON, as gzip if `compressed`.

    A cloud has a list per field of its points, all in the same order.
    """
    clouds = []
    for cloud in result["clouds"]:
        points: Sequence[Mapping[str, Any]] = cloud["points"]
        texts = [point["text"] for point in points]
        columns = {
            "hue": hue(cloud["mode"]),
            "ids": [point["memory_id"] for point in points],
            "x": [point["x"] for point in points],
            "y": [point["y"] for point in points],
            "at": [int(datetime.fromisoformat(point["occurred_at"]).timestamp()) for point in points],
            "text": [text + " …" if len(text) >= MAX_POINT_TEXT_CHARS else text for text in texts],
            "conversation": _numbered(point["conversation_id"] or "" for point in points),
            "type": _numbered(type_name(point["type"]) for point in points),
        }
        clouds.append({name: cloud[name] for name in CLOUD_FIELDS} | columns)
    body = orjson.dumps({"clouds": clouds})
    return gzip.compress(body, COMPRESSION, mtime=0) if compressed else body


def _numbered(values: Iterable[str]) -> Json:
    """Return the distinct values, and each point's index among them.

    >>> _numbered(["b", "a", "b"])
    {'names': ['b', 'a'], 'of': [0, 1, 0]}
    """
    numbers: dict[str, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"names": list(numbers), "of": of}
