"""Health: vectors, backlog, models and jobs, with repairs; warnings for all pages; undoing.

Criteria say whether modes are worth their cost; for each mode also week by week.

One bucket for all memories would be better than modes with many corrections, questions that mostly cross modes, or a
model that mostly chooses the default.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from modestream_client import operations as rows
from modestream_client.operations import Operation
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.charts import chart_of
from gateway.pages.live import live_answer
from gateway.pages.pages import Pages, boundary_of
from gateway.pages.requests import PAGES, View, read_form
from gateway.service.calls import Json, Refused
from gateway.service.dead_letters import LetterFilter

MODES_SHOWN = 100
"""Modes of one table, those with most memories; the page Modes lists all of a user."""

GENERAL = "general"
"""The embedder that others are compared with."""

MUCH_LAG = 100
"""Records behind from which a backlog needs attention: below, it is caught up within seconds."""

JOBS: Mapping[str, tuple[str, Operation[Any]]] = {
    rows.RETRY_FAILED.name: ("Embed what failed again", rows.RETRY_FAILED),
    rows.BACKFILL.name: ("Embed what has no vector yet", rows.BACKFILL),
    rows.RECONCILE.name: ("Compare vectors with memories, and mend", rows.RECONCILE),
    rows.REBUILD.name: ("Embed everything again", rows.REBUILD),
    rows.EVALUATE.name: ("Measure recall on questions from this log", rows.EVALUATE),
    rows.REFRESH.name: ("Understand turns again that are due", rows.REFRESH),
}
"""Jobs that a person may start, with descriptions."""


def health_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        view = pages.view(request)
        numbers = await _numbers(pages, view)
        growth = numbers["state"].get("growth") or {"unit": "day", "periods": ()}
        memories = int((numbers["boundary"] or {}).get("memories", 0))
        return await pages.render(
            view,
            "health.html",
            "Health and jobs",
            "health",
            **numbers,
            chart=chart_of(growth["unit"], dict(growth["periods"])),
            own_embedders=[mode for mode in numbers["modes"] if mode["embedder"] not in (None, GENERAL)],
            criteria=criteria_of_user(numbers["state"].get("telemetry") or {}, memories),
            histories=histories_of_modes((numbers["state"].get("telemetry") or {}).get("weeks") or ()),
            startable=JOBS,
            min_count=MIN_COUNT,
        )

    async def listen(request: Request) -> Response:
        view = pages.view(request)

        async def render() -> str:
            return pages.text(view, "parts/health_numbers.html", **await _numbers(pages, view))

        return live_answer(render, pages.service.users.boundaries)

    async def start(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        if (job := form.text("job")) not in JOBS:
            raise Refused("invalid_value", "there is no such job; load the page again and choose one", "job")
        title, operation = JOBS[job]
        arguments = {"all_projects": view.project is None}
        await pages.service.operations.start(operation, view.call(), view.write_scope, arguments)
        return pages.done(view.address("health"), f"Started: {title[:1].lower()}{title[1:]}.")

    async def compare(request: Request) -> Response:
        view = pages.view(request)
        mode = (await read_form(request)).text("of")
        arguments = {"mode": mode, "all_projects": view.project is None}
        await pages.service.operations.start(rows.COMPARE_EMBEDDERS, view.call(), view.write_scope, arguments)
        return pages.done(view.address("health"), "Started the comparison. Its result appears under Jobs.")

    async def attend(request: Request) -> Response:
        view = pages.view(request)
        return pages.part(view, "parts/attention.html", troubles=await troubles_of(pages, view))

    async def undo(request: Request) -> Response:
        view, token = pages.view(request), (await read_form(request)).text("token")
        flash = pages.flashes.find(token)
        if flash is None or flash.undo is None:
            raise Refused("invalid_value", "this can no longer be undone here")
        pages.flashes.drop(token)
        return await flash.undo(view)

    return [
        Route(f"{PAGES}/health", show),
        Route(f"{PAGES}/health/events", listen),
        Route(f"{PAGES}/health/jobs", start, methods=["POST"]),
        Route(f"{PAGES}/comparisons", compare, methods=["POST"]),
        Route(f"{PAGES}/attention", attend),
        Route(f"{PAGES}/undo", undo, methods=["POST"]),
    ]


async def troubles_of(pages: Pages, view: View) -> list[Json]:
    """Return the warnings: a sentence, the page, a count, and the job that repairs it."""
    letters = pages.service.dead_letters
    await letters.begin()
    tally = letters.tally(view.caller, LetterFilter(view.user, None, None))
    troubles: list[Json] = []

    def add(sentence: str, page: str, number: int = 0, job: str | None = None) -> None:
        troubles.append({"sentence": sentence, "page": page, "number": number, "job": job})

    if waiting := len(tally.replayable):
        add("dead letter" if waiting == 1 else "dead letters", "dead-letters", waiting)
    if view.user is None:
        return troubles
    state = await pages.state(view)
    vectors = state.get("modes") or {}
    if failed := sum(int(mode.get("failed") or 0) for mode in vectors.values()):
        add(
            "memory could not be embedded" if failed == 1 else "memories could not be embedded",
            "health",
            failed,
            "retry_failed",
        )
    for name in await missing_embedders(pages, view, state):
        add(f"The embedder {name} is missing", "modes")
    models = state.get("language_model")
    for name, model in models.items() if isinstance(models, dict) else ():
        if model["state"] == "open":
            add(f"The language model {name} is paused after failures", "health")
    if (behind := sum((state.get("lag") or {}).get(topic, 0) for topic in ("turns", "memories"))) > MUCH_LAG:
        add("records wait to be processed", "health", behind)
    return troubles


async def missing_embedders(pages: Pages, view: View, state: Json) -> list[str]:
    """Return the embedders of the user's modes that can't be had; the page of a sound service asks for no modes."""
    missing = [name for name, embedder in (state.get("embedders") or {}).items() if embedder["state"] == "failed"]
    if not missing:
        return []
    modes = (await boundary_of(pages.service, view) or {}).get("modes", {}).values()
    used = {GENERAL, *(mode.get("embedder") for mode in modes)}
    return [name for name in missing if name in used]


async def _numbers(pages: Pages, view: View) -> dict[str, Any]:
    """Return the values of the live part, from the boundaries now and the worker's last answer."""
    state, boundary = await pages.state(view), await boundary_of(pages.service, view)
    return {"boundary": boundary, "state": state, "modes": _modes(boundary, state), "compared": _compared(state)}


def _compared(state: Json) -> list[tuple[str, Json, str]]:
    """Return the latest comparison of each mode's embedder among the last jobs, with its time."""
    latest: dict[str, tuple[Json, str]] = {}
    for job in state.get("last_jobs") or ():
        for mode, result in (job.get("compared") or {}).items():
            latest.setdefault(mode, (result, job["at"]))
    return [(mode, result, at) for mode, (result, at) in sorted(latest.items())]


def _modes(boundary: Json | None, state: Json) -> list[Json]:
    """Return a row for each mode: memories and embedder from the boundary, states of vectors from the worker."""
    counted, vectors = (boundary or {}).get("modes", {}), state.get("modes", {})
    found = [
        {
            "name": name,
            "memories": counted.get(name, {}).get("memories", 0),
            "embedder": counted.get(name, {}).get("embedder"),
            "vectors": vectors.get(name),
        }
        for name in {*counted, *vectors}
    ]
    return sorted(found, key=lambda row: (-row["memories"], row["name"]))[:MODES_SHOWN]


Level = Literal["good", "warn", "unknown"]

MANY_CORRECTIONS = 5.0
"""Corrections per hundred memories: above, a person corrects more than one turn of a conversation of twenty."""

MANY_CROSSING = 0.5
"""Share of questions across modes above which they are the common case."""

HIGH_AGREEMENT = 0.95
"""Share of agreement above which a model changes fewer than one turn in twenty."""

MIN_COUNT = 20
"""Cases below which a share says little: one more would move it by five points."""


class Criterion(NamedTuple):
    """One figure, as texts; without advice if it has fewer than `MIN_COUNT` cases."""

    title: str
    value: str
    counted: str
    meaning: str
    advice: str
    level: Level


def criteria_of_user(telemetry: Mapping[str, Any], memories: int) -> list[Criterion]:
    in_use = telemetry.get("modes_in_use", 0)
    return [
        Criterion(
            "Modes in use",
            str(in_use),
            "modes with memories",
            "Modes keep different ways of speaking apart.",
            "One mode is enough for one kind of conversation. The page Modes suggests others."
            if in_use < 2
            else "Each is searched separately, with its own embedder.",
            "good" if in_use > 1 else "unknown",
        ),
        corrections(telemetry.get("corrections", 0), memories),
        *_of_usage(telemetry.get("user") or {}, "since the worker's start"),
    ]


def corrections(moved: int, of: int) -> Criterion:
    """Return corrections per hundred memories."""
    rate = 100 * moved / of if of else None
    is_bad = rate is not None and rate > MANY_CORRECTIONS
    advice = (
        "Too many: describe the contents of each mode, set project defaults, or have clients name the mode."
        if is_bad
        else "Few memories were moved: keep defaults and descriptions."
    )
    return Criterion(
        "Corrections per hundred memories",
        "-" if rate is None else f"{rate:.1f}",
        f"{moved:,} moved by hand or by a client, of {of:,} memories",
        "Only a question across modes finds a memory in the wrong mode.",
        advice if of >= MIN_COUNT else "",
        _level(of, is_bad=is_bad),
    )


def _of_usage(usage: Mapping[str, int], since: str) -> list[Criterion]:
    questions, answers = usage.get("questions", 0), usage.get("model_answers", 0)
    crossing, agreeing = usage.get("cross_mode_questions", 0), usage.get("model_agreements", 0)
    return [
        _share(
            "Questions across modes",
            (crossing, questions, f"questions {since}"),
            "A question across modes merges the ranks of several embedders, and is less exact than within one mode.",
            (
                "They are the common case: merge modes that are asked together.",
                "Most questions stay within one mode: the modes are well separated.",
                questions > 0 and crossing / questions > MANY_CROSSING,
            ),
        ),
        _share(
            "Model and default agree",
            (agreeing, answers, f"answers of a language model {since}"),
            "If the model chooses the default mode anyway, asking it changes nothing."
            if answers
            else "No language model has chosen a mode. Configure one for turns whose client names none.",
            (
                "It changes fewer than one turn in twenty: its calls can be saved.",
                "It moves turns that the default would misplace: keep it, and watch the corrections.",
                answers > 0 and agreeing / answers > HIGH_AGREEMENT,
            ),
        ),
    ]


def _share(title: str, cases: tuple[int, int, str], meaning: str, advice: tuple[str, str, bool]) -> Criterion:
    part, of, what = cases
    if_bad, if_good, is_bad = advice
    value = "-" if not of else f"{100 * part / of:.1f} %"
    said = "" if of < MIN_COUNT else if_bad if is_bad else if_good
    return Criterion(title, value, f"{part:,} of {of:,} {what}", meaning, said, _level(of, is_bad=is_bad))


def _level(of: int, *, is_bad: bool) -> Level:
    return "unknown" if of < MIN_COUNT else "warn" if is_bad else "good"


WEEKS_SHOWN = 8
"""Weeks of a mode that are shown and judged, the latest ones in which any mode was used."""

USAGE = ("memories", "questions", "cross_mode_questions", "corrections", "useful", "not_useful")
"""Counts of a mode and week, as `health` names them."""


class ModeHistory(NamedTuple):
    """A mode's weeks, the latest first, and whether they say that it pays."""

    name: str
    weeks: list[tuple[str, Json]]
    level: Level
    verdict: str


def histories_of_modes(weeks: Sequence[Json]) -> list[ModeHistory]:
    """Return each mode of the weeks of `health`, those with most questions and memories first."""
    histories = []
    shown = weeks[-WEEKS_SHOWN:]
    for name in {name for week in shown for name in week["modes"]}:
        of_mode = [(week["week"], week["modes"][name]) for week in reversed(shown) if name in week["modes"]]
        total = {count: sum(int(counts[count]) for _, counts in of_mode) for count in USAGE}
        histories.append((total["questions"] + total["memories"], ModeHistory(name, of_mode, *_verdict(total))))
    histories.sort(key=lambda pair: (-pair[0], pair[1].name))
    return [history for _, history in histories[:MODES_SHOWN]]


def _verdict(total: Mapping[str, int]) -> tuple[Level, str]:
    """Judge a mode by its counts: the gravest that can be said of at least `MIN_COUNT` cases."""
    placed, asked, rated = (
        total["memories"] + total["corrections"],
        total["questions"],
        total["useful"] + total["not_useful"],
    )
    if placed >= MIN_COUNT and 100 * total["corrections"] > MANY_CORRECTIONS * placed:
        return "warn", "Too many of its memories were moved elsewhere: describe it better, or give it up."
    if asked >= MIN_COUNT and total["cross_mode_questions"] > MANY_CROSSING * asked:
        return "warn", "It is mostly searched together with other modes: merge it with them."
    if rated >= MIN_COUNT and total["not_useful"] > total["useful"]:
        return "warn", "More of its memories were rated as not useful than as useful."
    if placed >= MIN_COUNT and not asked:
        return "warn", "It gets memories, and nobody asks it."
    if asked >= MIN_COUNT:
        return "good", "It pays: it is asked by itself, and few of its memories were moved elsewhere."
    return "unknown", ""
