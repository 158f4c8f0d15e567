"""The first page: the deployment with its users, or one user. Its numbers are live."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from modestream_client.operations import COMPARE_EMBEDDERS, HEALTH
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.charts import by_period, chart_of
from gateway.pages.criteria import criteria_of_deployment, criteria_of_user
from gateway.pages.forms import read_form
from gateway.pages.header import boundary_of, worker_may_be_away
from gateway.pages.live import live_answer
from gateway.pages.pages import Pages, see
from gateway.pages.view import PAGES, View
from gateway.readiness import probe_user
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.wire import Json

USERS_SHOWN = 50
"""Users of one page."""

MODES_SHOWN = 100
"""Modes of one table, those with most memories; the page Modes has all of a user."""

GENERAL = "general"
"""The embedder that others are compared with."""

STATE_S = 4.0
"""Seconds that an answer of the worker is shown: asking costs it milliseconds, for every open page."""

WAIT_S = 3.0
"""Limit of one question to the worker: without an answer the page shows what the gateway knows."""


def overview_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        view = pages.view(request)
        return await (_deployment(pages, view) if view.user is None else _user(pages, view, view.user))

    async def listen(request: Request) -> Response:
        view = pages.view(request)
        numbers = _Kept(lambda: _state(pages, view))

        async def render() -> str:
            template = "parts/deployment_numbers.html" if view.user is None else "parts/user_numbers.html"
            return pages.text(view, template, **await _numbers(pages, view, await numbers.value()))

        return live_answer(render, pages.service.users)

    async def compare(request: Request) -> Response:
        view = pages.view(request)
        mode = (await read_form(request)).text("of")
        arguments = {"mode": mode, "all_projects": view.project is None}
        await pages.service.operations.start(COMPARE_EMBEDDERS, view.call(), view.place, arguments)
        return see(view.address(notice="started"))

    return [
        Route(PAGES, show),
        Route(f"{PAGES}/live/events", listen),
        Route(f"{PAGES}/comparisons", compare, methods=["POST"]),
    ]


class _Kept:
    """A value that is asked for again after `STATE_S` seconds."""

    def __init__(self, ask: Callable[[], Awaitable[Json | None]]) -> None:
        self._ask = ask
        self._value: Json | None = None
        self._until = float("-inf")

    async def value(self) -> Json | None:
        if time.monotonic() > self._until:
            self._value = await self._ask()
            self._until = time.monotonic() + STATE_S
        return self._value


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
        own_embedders=[one for one in numbers["modes"] if one["embedder"] not in (None, GENERAL)],
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
    """Ask the worker; None where it does not answer."""
    service = pages.service
    if view.user is None:
        call = Call.within(view.caller, probe_user(service.boundary_fields), WAIT_S, view.request_id)
        return await service.users.deployment(call)
    try:
        return await service.operations.run(HEALTH, view.call(WAIT_S), view.place)
    except Refused:
        return None


async def _numbers(pages: Pages, view: View, state: Json | None) -> dict[str, Any]:
    """Return what the live part shows: boundaries of now, and the worker's last answer."""
    if view.user is None:
        return {"totals": _limited(pages.service.users.totals(view.caller)), "state": state or {}}
    boundary = await boundary_of(pages.service, view)
    compared = _compared(state or {})
    return {"boundary": boundary, "state": state or {}, "modes": _modes(boundary, state), "compared": compared}


def _compared(state: Json) -> list[tuple[str, Json, str]]:
    """Return the last comparison of each mode's embedder, with its time, of the jobs that ended last."""
    latest: dict[str, tuple[Json, str]] = {}
    for job in state.get("last_jobs") or ():
        for mode, found in (job.get("compared") or {}).items():
            latest.setdefault(mode, (found, job["at"]))
    return [(mode, found, at) for mode, (found, at) in sorted(latest.items())]


def _limited(totals: Json) -> Json:
    most = sorted(totals["modes"].items(), key=lambda one: (-one[1], one[0]))[:MODES_SHOWN]
    return {**totals, "modes": dict(most), "all_modes": len(totals["modes"])}


def _modes(boundary: Json | None, state: Json | None) -> list[Json]:
    """Return a row for each mode: memories and embedder as the topic tells, states of vectors as the worker does."""
    told, vectors = (boundary or {}).get("modes", {}), (state or {}).get("modes", {})
    rows = [
        {
            "name": name,
            "memories": told.get(name, {}).get("memories", 0),
            "embedder": told.get(name, {}).get("embedder"),
            "vectors": vectors.get(name),
        }
        for name in {*told, *vectors}
    ]
    return sorted(rows, key=lambda one: (-one["memories"], one["name"]))[:MODES_SHOWN]
