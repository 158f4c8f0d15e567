"""The overview: the deployment with its users, or one user. Its numbers are live."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from modestream_client.operations import COMPARE_EMBEDDERS, HEALTH
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from gateway.pages.charts import by_period, chart_of
from gateway.pages.criteria import criteria_of_deployment, criteria_of_user
from gateway.pages.pages import Pages, boundary_of, see, worker_may_be_away
from gateway.pages.requests import PAGES, View, read_form
from gateway.readiness import probe_user
from gateway.service.backend import Json
from gateway.service.boundaries import Boundaries
from gateway.service.calls import Call
from gateway.service.failures import Refused

USERS_SHOWN = 50
"""Users of one page."""

MODES_SHOWN = 100
"""Modes of one table, those with most memories; the page Modes lists all of a user."""

GENERAL = "general"
"""The embedder that others are compared with."""

STATE_S = 4.0
"""Time to live of the worker's answer: every request costs it milliseconds, for each open page."""

WAIT_S = 3.0
"""Timeout of a request to the worker; without an answer the page shows what the gateway knows."""

MIN_INTERVAL_S = 1.0
"""Minimum distance between two events of one stream."""

REFRESH_S = 5.0
"""Interval of rendering without a known change: lag and models announce none."""

MAX_STREAM_S = 900.0
"""Length of one stream: a revoked key is noticed when the browser connects again."""


def overview_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        return await (_deployment(pages, view) if view.user is None else _user(pages, view, view.user))

    async def listen(request: Request) -> Response:
        view = pages.view(request)
        state: Json | None = None
        fresh_until = float("-inf")

        async def render() -> str:
            nonlocal state, fresh_until
            if time.monotonic() > fresh_until:
                state = await _state(pages, view)
                fresh_until = time.monotonic() + STATE_S
            template = "parts/deployment_numbers.html" if view.user is None else "parts/user_numbers.html"
            return pages.text(view, template, **await _numbers(pages, view, state))

        return live_answer(render, pages.service.users.boundaries)

    async def compare(request: Request) -> Response:
        view = pages.view(request)
        mode = (await read_form(request)).text("of")
        arguments = {"mode": mode, "all_projects": view.project is None}
        await pages.service.operations.start(COMPARE_EMBEDDERS, view.call(), view.write_scope, arguments)
        return see(view.address(notice="started"))

    return [
        Route(PAGES, show),
        Route(f"{PAGES}/live/events", listen),
        Route(f"{PAGES}/comparisons", compare, methods=["POST"]),
    ]


def live_answer(render: Callable[[], Awaitable[str]], boundaries: Boundaries) -> StreamingResponse:
    """Return a stream of server-sent events: a part of a page, sent when its text has changed."""

    async def events() -> AsyncIterator[str]:
        end, last = time.monotonic() + MAX_STREAM_S, ""
        while time.monotonic() < end:
            version = boundaries.version
            text = await render()
            # A comment where nothing has changed: it keeps proxies from closing the connection.
            yield ": alive\n\n" if text == last else as_event(text)
            last = text
            await asyncio.sleep(MIN_INTERVAL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S - MIN_INTERVAL_S):
                    await boundaries.changed_since(version)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


def as_event(text: str) -> str:
    r"""Return a text as one event.

    >>> as_event("a\nb")
    'data: a\ndata: b\n\n'
    """
    return "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"


async def _user(pages: Pages, view: View, user: str) -> Response:
    health = await _state(pages, view)
    numbers = await _numbers(pages, view, health)
    growth = (health or {}).get("growth") or {"unit": "day", "periods": ()}
    memories = int((numbers["boundary"] or {}).get("memories", 0))
    return await pages.render(
        view,
        "user.html",
        user,
        "",
        **numbers,
        chart=chart_of(growth["unit"], dict(growth["periods"])),
        own_embedders=[mode for mode in numbers["modes"] if mode["embedder"] not in (None, GENERAL)],
        criteria=criteria_of_user((health or {}).get("telemetry") or {}, memories),
    )


async def _deployment(pages: Pages, view: View) -> Response:
    users = pages.service.users
    call = Call.within(view.caller, "", WAIT_S, view.request_id)
    page = (view.query.get("prefix", ""), USERS_SHOWN, view.query.get("cursor") or None)
    listed = None
    with worker_may_be_away():
        listed = await users.list(call, *page)
    listed = listed or await users.list(call, *page, asks_worker=False)
    health = await _state(pages, view)
    numbers = await _numbers(pages, view, health)
    return await pages.render(
        view,
        "deployment.html",
        "Overview",
        "",
        **numbers,
        users=listed,
        name_of=pages.service.boundary_fields.name,
        chart=chart_of(*by_period(users.first_days(view.caller))),
        criteria=criteria_of_deployment(numbers["totals"], (health or {}).get("usage")),
    )


async def _state(pages: Pages, view: View) -> Json | None:
    """Ask the worker for its state; None if it does not answer."""
    service = pages.service
    if view.user is None:
        call = Call.within(view.caller, probe_user(service.boundary_fields), WAIT_S, view.request_id)
        return await service.users.deployment(call)
    try:
        return await service.operations.run(HEALTH, view.call(WAIT_S), view.write_scope)
    except Refused:
        return None


async def _numbers(pages: Pages, view: View, state: Json | None) -> dict[str, Any]:
    """Return the values of the live part, from the boundaries now and the worker's last answer."""
    if view.user is None:
        totals = pages.service.users.totals(view.caller)
        largest = sorted(totals["modes"].items(), key=lambda mode: (-mode[1], mode[0]))[:MODES_SHOWN]
        limited = {**totals, "modes": dict(largest), "all_modes": len(totals["modes"])}
        return {"totals": limited, "state": state or {}}
    boundary = await boundary_of(pages.service, view)
    compared = _compared(state or {})
    return {"boundary": boundary, "state": state or {}, "modes": _modes(boundary, state), "compared": compared}


def _compared(state: Json) -> list[tuple[str, Json, str]]:
    """Return the latest comparison of each mode's embedder among the last jobs, with its time."""
    latest: dict[str, tuple[Json, str]] = {}
    for job in state.get("last_jobs") or ():
        for mode, result in (job.get("compared") or {}).items():
            latest.setdefault(mode, (result, job["at"]))
    return [(mode, result, at) for mode, (result, at) in sorted(latest.items())]


def _modes(boundary: Json | None, state: Json | None) -> list[Json]:
    """Return a row for each mode: memories and embedder from the boundary, states of vectors from the worker."""
    counted, vectors = (boundary or {}).get("modes", {}), (state or {}).get("modes", {})
    rows = [
        {
            "name": name,
            "memories": counted.get(name, {}).get("memories", 0),
            "embedder": counted.get(name, {}).get("embedder"),
            "vectors": vectors.get(name),
        }
        for name in {*counted, *vectors}
    ]
    return sorted(rows, key=lambda row: (-row["memories"], row["name"]))[:MODES_SHOWN]
