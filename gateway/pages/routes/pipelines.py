"""Pipelines: the steps as they run, changing one after a dry run, revisions, and going back to one."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from modestream_client import operations as rows
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, View, read_form
from gateway.readiness import probe_user
from gateway.service.access import require_operating
from gateway.service.calls import Call, Json, Refused

REVISIONS_SHOWN = 20

WAIT_S = 15.0
"""Timeout of an edit: all workers have it before it is answered."""


def pipeline_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes, for operators of the deployment."""
    operations, path = pages.service.operations, f"{PAGES}/pipelines"

    def call_of(view: View) -> Call:
        require_operating(view.caller)
        return Call.within(view.caller, probe_user(pages.service.boundary_fields), WAIT_S, view.request_id)

    async def show(request: Request) -> Response:
        view = pages.view(request)
        call = call_of(view)
        shown = await operations.run(rows.GET_PIPELINE, call, {}, {"revision": None})
        listed = await operations.run(rows.LIST_REVISIONS, call, {}, {"limit": REVISIONS_SHOWN})
        return await pages.render(view, "pipelines.html", "Pipelines", "pipelines", shown=shown, listed=listed)

    async def check(request: Request) -> Response:
        view = pages.view(request)
        call = call_of(view)
        before = await operations.run(rows.GET_PIPELINE, call, {}, {"revision": None})
        step = _step(before, view.query.get("step", ""))
        edit = edit_of(step, view.query)
        fields = {"edits": [edit], "dry_run": True, "expected_revision": before["revision"]}
        after = _step(await operations.run(rows.EDIT_PIPELINE, call, {}, fields), step["step_id"])
        changes = changed(step, after)
        values: Json = {"step": step, "changes": changes, "edit": json.dumps(edit), "revision": before["revision"]}
        return await pages.render(view, "pipeline_check.html", step["step_id"], "pipelines", **values)

    async def change(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        try:
            edit, revision = json.loads(form.text("edit")), int(form.text("revision"))
        except ValueError:
            raise Refused("invalid_value", "check the change again before you save it", "edit") from None
        fields = {"edits": [edit], "expected_revision": revision, "note": form.optional("note") or ""}
        done = await operations.run(rows.EDIT_PIPELINE, call_of(view), {}, fields)
        return pages.done(view.address("pipelines"), f"Saved as revision {done['revision']}.")

    async def roll_back(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        revision = form.text("revision")
        if not revision.isdecimal():
            raise Refused("invalid_value", "there is no such revision; choose one of the list", "revision")
        fields = {"revision": int(revision), "note": f"back to revision {revision}"}
        done = await operations.run(rows.ROLLBACK_PIPELINE, call_of(view), {}, fields)
        return pages.done(
            view.address("pipelines"), f"Revision {revision} counts again, as revision {done['revision']}."
        )

    return [
        Route(path, show, methods=["GET"]),
        Route(path, change, methods=["POST"]),
        Route(f"{path}/check", check),
        Route(f"{path}/rollback", roll_back, methods=["POST"]),
    ]


def edit_of(step: Mapping[str, Any], query: Mapping[str, str]) -> Json:
    """Return the edit that a form of a step asks for; an empty setting has its default again.

    >>> step = {"step_id": "a.b", "settings": ["n"], "config": {"n": 3}, "can_be_switched_off": True}
    >>> edit_of(step, {"n": "7"})
    {'op': 'config', 'step_id': 'a.b', 'config': {'n': 7}, 'enabled': False}
    """
    config: Json = {}
    for name in step["settings"]:
        text = query.get(name, "").strip()
        if not text:
            config |= {name: None} if name in step["config"] else {}
            continue
        config[name] = text
        with suppress(ValueError):
            config[name] = json.loads(text)
    edit: Json = {"op": "config", "step_id": step["step_id"], "config": config}
    return edit | ({"enabled": bool(query.get("enabled"))} if step["can_be_switched_off"] else {})


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the differences between a step and its next revision, as texts."""

    def shown(step: Mapping[str, Any]) -> dict[str, str]:
        config = {name: json.dumps(value, ensure_ascii=False) for name, value in step["config"].items()}
        return {"step": "on" if step["enabled"] else "off", **config}

    old, new = shown(before), shown(after)
    return [
        (name, old.get(name, "default"), new.get(name, "default"))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def _step(pipelines: Mapping[str, Any], step_id: str) -> Json:
    for steps in pipelines["pipelines"].values():
        for step in steps:
            if step["step_id"] == step_id:
                return dict(step)
    raise Refused("not_found", "the pipelines have no such step", "step", names_resource=True)
