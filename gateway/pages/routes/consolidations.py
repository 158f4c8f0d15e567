"""Consolidations: the last runs, what one changed and where from, and a run that is started here."""

import asyncio
from collections.abc import Sequence

from modestream_client.operations import CONSOLIDATE
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import read_form
from gateway.pages.pages import Pages, see
from gateway.pages.path_names import name_of
from gateway.pages.view import PAGES, View
from gateway.service.access import PROJECT
from gateway.service.failures import Refused
from gateway.service.runs import Change, Run
from gateway.service.wire import Json

AT_ONCE = 16
"""Memories of a run that are loaded at the same time."""


def consolidation_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    consolidations, path = ConsolidationPages(pages), f"{PAGES}/consolidations"
    return [
        Route(path, consolidations.show, methods=["GET"]),
        Route(path, consolidations.start, methods=["POST"]),
        Route(f"{path}/progress", consolidations.progress, methods=["GET"]),
        Route(f"{path}/one/{{run}}", consolidations.show_one, methods=["GET"]),
    ]


class ConsolidationPages:
    """The handlers."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._service = pages.service

    async def show(self, request: Request) -> Response:
        """List the last runs; with `job`, show how that one is going."""
        view = self._pages.view(request)
        state = await self._state(view)
        runs = await self._service.runs.list(view.call(), view.project)
        title = "Consolidations"
        return await self._pages.render(view, "consolidations.html", title, "consolidations", runs=runs, **state)

    async def progress(self, request: Request) -> Response:
        """Return the state of a run that was started here."""
        view = self._pages.view(request)
        return self._pages.part(view, "parts/run_state.html", **await self._state(view))

    async def start(self, request: Request) -> Response:
        """Start a run in the chosen project, and lead to its progress."""
        view, form = self._pages.view(request), await read_form(request)
        place = {PROJECT: form.text("project")}
        job = await self._service.operations.start(CONSOLIDATE, view.call(), place, {"mode": form.optional("mode")})
        return see(view.address("consolidations", job=job))

    async def show_one(self, request: Request) -> Response:
        """Show what a run changed, with the texts of its memories as they are now."""
        view = self._pages.view(request)
        runs = await self._service.runs.list(view.call(), None)
        run = next((one for one in runs if one.run == name_of(request, "run")), None)
        if run is None:
            raise Refused("not_found", "there is no such run; runs are kept for a day", "run", names_resource=True)
        changes = await self._with_memories(view, run)
        return await self._pages.render(
            view, "consolidation.html", "Consolidation", "consolidations", run=run, changes=changes
        )

    async def _state(self, view: View) -> Json:
        job = view.query.get("job")
        if not job:
            return {"job": None, "result": None}
        return {"job": job, "result": await self._service.operations.result(view.call(), job)}

    async def _with_memories(self, view: View, run: Run) -> list[tuple[Change, Json | None]]:
        scope: Json = {} if run.project_id is None else {"project_id": run.project_id}
        gate = asyncio.Semaphore(AT_ONCE)

        async def loaded(change: Change) -> tuple[Change, Json | None]:
            if change.memory_id is None:
                return change, None
            async with gate:
                try:
                    return change, await self._service.memories.get(view.call(), scope, change.memory_id)
                except Refused:
                    return change, None

        return list(await asyncio.gather(*map(loaded, run.diff)))
