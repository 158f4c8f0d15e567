"""Runs as waterfalls of their steps, and what a context or an answer was based on: its memories, by section."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from modestream_client.operations import GET_CONTEXT, LIST_RUNS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.charts import BAR_WIDTH
from gateway.pages.formats import speaker_of
from gateway.pages.pages import Pages
from gateway.pages.relations import get_all
from gateway.pages.requests import PAGES, name_of
from gateway.pages.routes.ask import TITLES
from gateway.service.access import PROJECT, readable_project
from gateway.service.calls import Json, Refused

PAGE = "runs"

RUNS_SHOWN = 100

PARTS = {
    "accept": "Turn accepted",
    "index": "Turn embedded",
    "understand": "Turn read by a model",
    "intend": "Intention updated",
    "categorize": "Categories updated",
    "answer": "Answered",
    "consolidate": "Consolidated",
}

PIPELINES = {"memorize": "memorize: turns", "retrieve": "retrieve: questions", "evolve": "evolve: consolidations"}

FAILED = {"": "all", "true": "failed", "false": "not failed"}

MIN_WIDTH = 0.4
"""Units of the shortest bar: a step of microseconds must still be seen."""


class Row(NamedTuple):
    """A step, or a call of a language model (`model`): its bar from `start` on, and its times in milliseconds."""

    name: str
    at_ms: float
    ms: float
    start: float
    width: float
    model: Json | None = None


class Totals(NamedTuple):
    """Cost of a run's language models; `cost_usd` is None if any price is unknown, or no model answered."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


class RunGroup(NamedTuple):
    """The runs of a turn, or of one request, and those of further turns that went alike."""

    runs: Sequence[Json]
    alike: Sequence[Sequence[Json]]


def run_pages(pages: Pages) -> Sequence[BaseRoute]:
    operations = pages.service.operations

    async def show(request: Request) -> Response:
        view = pages.view(request)
        filters: Json = {}
        if (pipeline := view.query.get("pipeline")) in PIPELINES:
            filters["pipeline"] = pipeline
        if (failed := view.query.get("failed")) in ("true", "false"):
            filters["failed"] = failed == "true"
        listed = await operations.run(LIST_RUNS, view.call(), view.write_scope, {**filters, "limit": RUNS_SHOWN})
        return await pages.render(
            view,
            "runs.html",
            "Runs",
            PAGE,
            groups=folded([run for run in listed["runs"] if _is_of(run, view.project)]),
            is_complete=listed["is_complete"],
            filters=filters,
            pipelines=PIPELINES,
            failed=FAILED,
            parts=PARTS,
            totals_of=totals_of,
        )

    async def show_one(request: Request) -> Response:
        view = pages.view(request)
        scope = view.write_scope
        runs = (await operations.run(LIST_RUNS, view.call(), scope, {"run_id": name_of(request, "run")}))["runs"]
        if not runs:
            raise Refused("not_found", "there is no such run; it may have expired", "run", names_resource=True)
        run = runs[0]
        of_turn: list[Json] = []
        if run.get("memory_id") is not None:
            of_turn = (await operations.run(LIST_RUNS, view.call(), scope, {"memory_id": run["memory_id"]}))["runs"]
        linked = [other for other in of_turn if other["run_id"] != run["run_id"]]
        return await pages.render(
            view,
            "run.html",
            "Run",
            PAGE,
            run=run,
            linked=sorted(linked, key=itemgetter("at")),
            parts=PARTS,
            rows_of=rows_of,
            totals_of=totals_of,
        )

    return [
        Route(f"{PAGES}/{PAGE}", show, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/{{run}}", show_one, methods=["GET"]),
    ]


def rows_of(run: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a waterfall in order of time, a step before the calls in it.

    >>> [(row.start, row.width) for row in rows_of({"ms": 10, "steps": [{"step": "a.b", "at_ms": 5, "ms": 2.5}]})]
    [(50.0, 25.0)]
    """
    whole_ms = max(float(run["ms"]), 0.001)
    steps = [(step["at_ms"], 0, step, None) for step in run.get("steps") or ()]
    calls = [(call["at_ms"], 1, call, call) for call in run.get("models") or ()]
    rows = []
    for at_ms, _, timed, model in sorted([*steps, *calls], key=lambda row: row[:2]):
        start = min(BAR_WIDTH * float(at_ms) / whole_ms, BAR_WIDTH - MIN_WIDTH)
        width = min(max(BAR_WIDTH * float(timed["ms"]) / whole_ms, MIN_WIDTH), BAR_WIDTH - start)
        rows.append(Row(timed["step"], float(at_ms), float(timed["ms"]), round(start, 2), round(width, 2), model))
    return rows


def totals_of(run: Mapping[str, Any]) -> Totals:
    calls = list(run.get("models") or ())
    costs = [call.get("cost_usd") for call in calls if call.get("failure") is None]
    prices = [float(cost) for cost in costs if cost is not None]
    tokens_in, tokens_out = (sum(call.get(name) or 0 for call in calls) for name in ("tokens_in", "tokens_out"))
    return Totals(len(calls), tokens_in, tokens_out, sum(prices) if prices and len(prices) == len(costs) else None)


def folded(runs: Sequence[Json]) -> list[RunGroup]:
    """Return the runs of each turn together; consecutive turns that went alike are one group."""
    of_turn: dict[str, list[Json]] = {}
    for run in runs:
        of_turn.setdefault(run.get("memory_id") or run["run_id"], []).append(run)
    groups = []
    for _, alike in groupby(of_turn.values(), lambda of: [_description(run) for run in of]):
        first, *others = alike
        groups.append(RunGroup(first, others))
    return groups


def _description(run: Json) -> tuple[Any, ...]:
    """Return what a row shows of a run, other than its time, duration and models."""
    query = (run.get("input") or {}).get("query")
    failure = (run["failure"] or {}).get("code")
    return run["part"], run["scope"].get("project_id"), query, failure, run["warnings"], bool(run["models"])


def _is_of(run: Json, project: str | None) -> bool:
    """True if a run is of the project, or of all; a run of an unreadable record counts for every project."""
    named = run["scope"].get("project_id")
    return project is None or named in (None, "*", project) or (isinstance(named, list) and project in named)


SHOWN_TURNS = 5
"""Turns of one memory that are linked: a summary has up to thousands."""


def context_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        view, context_id = pages.view(request), name_of(request, "context_id")
        scope = {PROJECT: view.project or readable_project(view.caller, view.user or "")}
        try:
            context = await pages.service.operations.run(GET_CONTEXT, view.call(), scope, {"context_id": context_id})
        except Refused as refused:
            if refused.code != "not_found":
                raise
            return await pages.render(view, "context.html", "Basis", "ask", context=None, context_id=context_id)
        references = context["references"]
        records = await get_all(pages.service, view.call(), [({}, each["memory_id"]) for each in references])
        rows = [
            {**reference, "memory": record, "turns": reference.get("turns", [])}
            for reference, record in zip(references, records, strict=True)
        ]
        return await pages.render(
            view,
            "context.html",
            "Basis",
            "ask",
            context=context,
            context_id=context_id,
            sections=[(TITLES.get(name, name), list(of)) for name, of in groupby(rows, itemgetter("section"))],
            speaker_of=speaker_of,
            shown_turns=SHOWN_TURNS,
        )

    return [Route(f"{PAGES}/contexts/{{context_id}}", show)]
