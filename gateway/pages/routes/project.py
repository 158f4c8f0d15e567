"""Pages about one project: categories, the intention of its user, consolidations; forgetting it, or the user."""

from collections.abc import Sequence
from typing import Any

from modestream_client import operations as rows
from modestream_client.hits import ListResult
from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES, Operation
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import plural
from gateway.pages.pages import Pages, see
from gateway.pages.relations import get_all
from gateway.pages.requests import PAGES, View, name_of, read_form
from gateway.pages.texts import marked_text
from gateway.service.access import PROJECT, may_in_project
from gateway.service.calls import Json, Refused

INTENTION_LISTS = (
    ("goals", "Goals"),
    ("blocking_errors", "Blocking errors"),
    ("constraints", "Constraints"),
    ("decisions", "Decisions"),
)
"""The lists of an intention with their titles, in the order of the page."""

SETTABLE = ("goals", "constraints")

SUGGEST_WAIT_S = 60.0
"""Timeout of a search for categories: at most 4,000 facts of each mode are grouped."""


def category_pages(pages: Pages) -> Sequence[BaseRoute]:
    operations = pages.service.operations
    path, path_of_one = f"{PAGES}/categories", f"{PAGES}/categories/one/{{name}}"

    async def show(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        listed = await operations.run(rows.LIST_CATEGORIES, view.call(), view.write_scope, {"include_summary": True})
        suggested = None
        if view.query.get("suggest"):
            suggested = await operations.run(rows.SUGGEST_CATEGORIES, view.call(SUGGEST_WAIT_S), view.write_scope)
        shown = {"listed": listed, "suggested": suggested, "marked_text": marked_text}
        return await pages.render(view, "categories.html", "Categories", "categories", **shown)

    async def show_one(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        fields = {"name": name_of(request, "name")}
        category = await operations.run(rows.GET_CATEGORY, view.call(), view.write_scope, fields)
        return await pages.render(view, "category.html", category["name"], "categories", category=category)

    async def declare(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("name")
        fields = {"name": name, "description": form.optional("description") or ""}
        await operations.run(rows.DECLARE_CATEGORY, view.call(), view.write_scope, fields)
        return pages.done(view.address("categories", "one", name), f"Saved {name}.")

    async def rename(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("new_name")
        fields = {"name": name_of(request, "name"), "new_name": name}
        await operations.run(rows.RENAME_CATEGORY, view.call(), view.write_scope, fields)
        return pages.done(view.address("categories", "one", name), f"Renamed to {name}.")

    async def delete(request: Request) -> Response:
        view, name = await pages.in_one_project(pages.view(request)), name_of(request, "name")
        await operations.run(rows.DELETE_CATEGORY, view.call(), view.write_scope, {"name": name})
        return pages.done(view.address("categories"), f"Deleted {name}.")

    return [
        Route(path, show, methods=["GET"]),
        Route(path, declare, methods=["POST"]),
        Route(path_of_one, show_one, methods=["GET"]),
        Route(f"{path_of_one}/rename", rename, methods=["POST"]),
        Route(f"{path_of_one}/delete", delete, methods=["POST"]),
    ]


def intention_pages(pages: Pages) -> Sequence[BaseRoute]:
    operations, path = pages.service.operations, f"{PAGES}/intention"

    async def show(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        intention = await operations.run(rows.GET_INTENTION, view.call(), view.write_scope)
        set_texts = {
            name: [entry["text"] for entry in intention[name] if entry["source"] == "set"] for name in SETTABLE
        }
        return await pages.render(
            view,
            "intention.html",
            "Intention",
            "intention",
            intention=intention,
            set_texts=set_texts,
            lists=INTENTION_LISTS,
        )

    async def change(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        lists = {
            name: [line.strip() for line in (form.optional(name) or "").splitlines() if line.strip()]
            for name in SETTABLE
        }
        await operations.run(rows.SET_INTENTION, view.call(), view.write_scope, lists)
        return pages.done(view.address("intention"), "Saved the intention.")

    return [Route(path, show, methods=["GET"]), Route(path, change, methods=["POST"])]


def consolidation_pages(pages: Pages) -> Sequence[BaseRoute]:
    service, path = pages.service, f"{PAGES}/consolidations"

    async def show(request: Request) -> Response:
        view = pages.view(request)
        state = await started_run(view)
        runs = await service.runs.list(view.call(), view.project)
        return await pages.render(view, "consolidations.html", "Consolidations", "consolidations", runs=runs, **state)

    async def progress(request: Request) -> Response:
        view = pages.view(request)
        return pages.part(view, "parts/run_state.html", **await started_run(view))

    async def start(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        scope = {PROJECT: form.text("project")}
        job = await service.operations.start(rows.CONSOLIDATE, view.call(), scope, {"mode": form.optional("mode")})
        return see(view.address("consolidations", job=job))

    async def show_one(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "run")
        run = next((run for run in await service.runs.list(view.call(), None) if run.run == name), None)
        if run is None:
            raise Refused("not_found", "there is no such run; runs are kept for a day", "run", names_resource=True)
        scope = {} if run.project_id is None else {PROJECT: run.project_id}
        ids = [change.memory_id for change in run.diff if change.memory_id is not None]
        memories = await get_all(service, view.call(), [(scope, memory_id) for memory_id in ids])
        by_id = dict(zip(ids, memories, strict=True))
        changes = [(change, by_id.get(change.memory_id or "")) for change in run.diff]
        return await pages.render(
            view,
            "consolidation.html",
            "Consolidation",
            "consolidations",
            run=run,
            changes=changes,
            may_keep=may_in_project(view.caller, view.user or "", run.project_id, "manage"),
        )

    async def keep(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        notice = await _keep_turns(pages, view, form.text("memory_id"))
        return pages.done(view.address("consolidations", "one", name_of(request, "run")), notice)

    async def started_run(view: View) -> Json:
        """Return the state of the run that the parameter `job` names."""
        job = view.query.get("job")
        has_ended, result = await service.operations.result(view.call(), job) if job else (False, {})
        return {"job": job or None, "result": result if has_ended else None}

    return [
        Route(path, show, methods=["GET"]),
        Route(path, start, methods=["POST"]),
        Route(f"{path}/progress", progress, methods=["GET"]),
        Route(f"{path}/one/{{run}}", show_one, methods=["GET"]),
        Route(f"{path}/one/{{run}}", keep, methods=["POST"]),
    ]


async def _keep_turns(pages: Pages, view: View, summary_id: str) -> str:
    """Keep the turns that a summary replaced, and return a notice.

    Forgetting the summary restores them, and no later run makes it again.
    """
    summary = await pages.service.memories.get(view.call(), {}, summary_id)
    if summary.get("origin") != "distilled":
        raise Refused("invalid_value", "only turns that a summary replaced can be kept", "memory_id")
    turns = {span["memory_id"] for span in summary["evidence"] if span.get("memory_id")}
    await pages.service.memories.forget(view.call(), pages.scope_of(summary), summary_id)
    return f"Kept its {plural(len(turns), 'turn')}: searches find them again. The summary is gone."


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
        what = view.project or view.user
        notice = f"Forgot {what}: {plural(done['forgotten'], 'memory', 'memories')}."
        return pages.done(view.address(project=None, mode=None), notice)

    path = f"{PAGES}/forget"
    return [Route(path, ask, methods=["GET"]), Route(path, forget, methods=["POST"])]


async def _question(pages: Pages, view: View, error: str | None = None) -> Response:
    """Ask for confirmation. Raises Refused, `not_allowed`."""
    _require_manage(view)
    return await pages.render(
        view,
        "forget.html",
        "Forget a project" if view.project else "Forget a user",
        "forget",
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
