"""Runs: how turns, questions and consolidations went, and one of them as a waterfall of its steps."""

from collections.abc import Sequence

from modestream_client.operations import LIST_RUNS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages
from gateway.pages.path_names import name_of
from gateway.pages.view import PAGES, View
from gateway.pages.waterfall import rows_of, totals_of
from gateway.service.failures import Refused
from gateway.service.wire import Json

PAGE = "runs"

RUNS_SHOWN = 100
"""Runs of one page."""

PARTS = {
    "accept": "Turn accepted",
    "index": "Turn embedded",
    "understand": "Turn read by a model",
    "intend": "Intention updated",
    "categorize": "Categories updated",
    "answer": "Answered",
    "consolidate": "Consolidated",
}
"""What a run did, in words."""

PIPELINES = {"memorize": "memorize: turns", "retrieve": "retrieve: questions", "evolve": "evolve: consolidations"}

FAILED = {"": "all", "true": "failed", "false": "not failed"}


def run_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    operations = pages.service.operations

    async def show(request: Request) -> Response:
        view = pages.view(request)
        filters = _filters(view)
        found = await operations.run(LIST_RUNS, view.call(), view.place, {**filters, "limit": RUNS_SHOWN})
        return await pages.render(
            view,
            "runs.html",
            "Runs",
            PAGE,
            runs=[run for run in found["runs"] if _is_of(run, view.project)],
            is_complete=found["is_complete"],
            filters=filters,
            pipelines=PIPELINES,
            failed=FAILED,
            parts=PARTS,
            totals_of=totals_of,
        )

    async def show_one(request: Request) -> Response:
        view = pages.view(request)
        found = await operations.run(LIST_RUNS, view.call(), view.place, {"run_id": name_of(request, "run")})
        if not found["runs"]:
            raise Refused("not_found", "there is no such run, or it was kept long enough", "run", names_resource=True)
        [run, *_] = found["runs"]
        linked = await _linked(view, run)
        return await pages.render(
            view, "run.html", "Run", PAGE, run=run, linked=linked, parts=PARTS, rows_of=rows_of, totals_of=totals_of
        )

    async def _linked(view: View, run: Json) -> list[Json]:
        """Return the other runs of the same turn, oldest first."""
        if run.get("memory_id") is None:
            return []
        found = await operations.run(LIST_RUNS, view.call(), view.place, {"memory_id": run["memory_id"]})
        return sorted((one for one in found["runs"] if one["run_id"] != run["run_id"]), key=lambda one: str(one["at"]))

    return [
        Route(f"{PAGES}/{PAGE}", show, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/{{run}}", show_one, methods=["GET"]),
    ]


def _filters(view: View) -> Json:
    """Return the filters of the page's address, without those that are none."""
    pipeline, failed = view.query.get("pipeline"), view.query.get("failed")
    filters: Json = {"pipeline": pipeline} if pipeline in PIPELINES else {}
    return filters | ({"failed": failed == "true"} if failed in ("true", "false") else {})


def _is_of(run: Json, project: str | None) -> bool:
    """True if a run is one of the chosen project, None for all; one that could not be read is of all."""
    named = run["scope"].get("project_id")
    return project is None or named in (None, "*", project) or (isinstance(named, list) and project in named)
