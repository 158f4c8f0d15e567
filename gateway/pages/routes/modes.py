"""Modes: the list, one with its forms, and suggestions; declare, change, rename, set as default, delete."""

import asyncio
from collections.abc import Sequence

from modestream_client import operations as rows
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import TYPES
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, Form, View, name_of, read_form
from gateway.pages.texts import marked_text
from gateway.service.calls import Json, Refused

DECAYS = (("fast", "days"), ("medium", "weeks"), ("slow", "months"), ("none", "never"))
"""Decays with the time in which memories lose weight."""

BY_TYPE = "by_type"

DECAYING_TYPES = tuple((name, of.plural) for name, of in TYPES.items() if name != "working")
"""Types with a decay: the latest turns are turns, too."""

PROMPTED_STEPS = (
    ("understand", "understanding a turn"),
    ("distil", "summarizing turns"),
    ("categorize", "choosing and describing categories"),
)

CHOICES = {"decays": DECAYS, "by_type": BY_TYPE, "decaying_types": DECAYING_TYPES, "prompted_steps": PROMPTED_STEPS}

LONG_WAIT_S = 60.0
"""Timeout of a deletion, a renaming or a search for suggestions."""

COUNTS = ("eligible", "ready", "pending", "stale", "failed", "not_applicable")


def mode_pages(pages: Pages) -> Sequence[BaseRoute]:
    modes = ModePages(pages)
    path = f"{PAGES}/modes"
    return [
        Route(path, modes.show, methods=["GET"]),
        Route(path, modes.declare, methods=["POST"]),
        Route(f"{path}/progress", modes.progress, methods=["GET"]),
        Route(f"{path}/default", modes.set_default, methods=["POST"]),
        Route(f"{path}/one/{{name}}", modes.show_one, methods=["GET"]),
        Route(f"{path}/one/{{name}}/rename", modes.rename, methods=["POST"]),
        Route(f"{path}/one/{{name}}/delete", modes.delete, methods=["POST"]),
    ]


class ModePages:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._operations = pages.service.operations

    async def show(self, request: Request) -> Response:
        """List the modes; with `suggest`, search for undeclared ones too."""
        view = self._pages.view(request)
        values = await self._listed(view)
        suggested = None
        if view.query.get("suggest"):
            suggested = await self._operations.run(rows.SUGGEST_MODES, view.call(LONG_WAIT_S), view.write_scope)
        title = "Modes"
        return await self._pages.render(
            view, "modes.html", title, "modes", marked_text=marked_text, suggested=suggested, choices=CHOICES, **values
        )

    async def progress(self, request: Request) -> Response:
        """Return the table alone, which refreshes itself while memories are embedded again."""
        view = self._pages.view(request)
        return self._pages.part(view, "parts/mode_table.html", **await self._listed(view))

    async def show_one(self, request: Request) -> Response:
        view, name = self._pages.view(request), name_of(request, "name")
        values = await self._listed(view)
        mode = next((mode for mode in values["modes"] if mode["name"] == name), None)
        if mode is None:
            raise Refused("unknown_mode", "this user has no mode of that name here", "name", names_resource=True)
        return await self._pages.render(view, "mode.html", name, "modes", mode=mode, choices=CHOICES, **values)

    async def declare(self, request: Request) -> Response:
        view, form = self._pages.view(request), await read_form(request)
        name, is_new = form.text("name"), form.is_set("is_new")
        if is_new and name in {mode["name"] for mode in (await self._listed(view))["modes"]}:
            raise Refused("conflict", f"the mode {name} exists already: open it in the list to change it", "name")
        await self._operations.run(
            rows.DECLARE_MODE, view.call(), view.write_scope, {"name": name, **_declaration(form)}
        )
        if is_new:
            return self._pages.done(view.address("modes"), f"Declared {name}.")
        return self._pages.done(view.address("modes"), f"Saved {name}.")

    async def set_default(self, request: Request) -> Response:
        """Set or clear the default of the user, or of the chosen project."""
        view, form = self._pages.view(request), await read_form(request)
        name = form.optional("name")
        fields = {"name": name, "for_project": form.is_set("for_project")}
        await self._operations.run(rows.SET_DEFAULT_MODE, view.call(), view.write_scope, fields)
        return self._pages.done(view.address("modes"), f"Turns that name no mode now get {name or 'general'}.")

    async def rename(self, request: Request) -> Response:
        """Rename a mode; its memories follow, and so does the picker."""
        view, form = self._pages.view(request), await read_form(request)
        name, new_name = name_of(request, "name"), form.text("new_name")
        fields = {"name": name, "new_name": new_name}
        await self._operations.run(rows.RENAME_MODE, view.call(LONG_WAIT_S), view.write_scope, fields)
        picked = new_name if view.mode == name else view.mode
        return self._pages.done(view.address("modes", mode=picked), f"Renamed {name} to {new_name}.")

    async def delete(self, request: Request) -> Response:
        """Delete a mode if its name was typed; its memories move or are forgotten."""
        view, form, name = self._pages.view(request), await read_form(request), name_of(request, "name")
        if form.optional("confirm") != name:
            raise Refused("invalid_value", "to delete the mode, type its name", "confirm")
        fields = {"name": name, "memories": form.text("memories")}
        await self._operations.run(rows.DELETE_MODE, view.call(LONG_WAIT_S), view.write_scope, fields)
        picked = None if view.mode == name else view.mode
        return self._pages.done(view.address("modes", mode=picked), f"Deleted {name}.")

    async def _listed(self, view: View) -> Json:
        """Return modes with counts of their memories, defaults, and embedders."""
        listed, health = await asyncio.gather(
            self._operations.run(rows.LIST_MODES, view.call(), view.write_scope),
            self._operations.run(rows.HEALTH, view.call(), view.write_scope),
        )
        modes = []
        for mode in listed["modes"]:
            vectors = health["modes"].get(mode["name"]) or {}
            counts = {name: int(vectors.get(name) or 0) for name in COUNTS}
            counts["all"] = counts["eligible"] + counts["not_applicable"]
            modes.append({**mode, "counts": {**counts, "error": vectors.get("error")}})
        loading = sum((mode.get("embedder_status") or {}).get("state") == "loading" for mode in modes)
        working = loading + sum(mode["counts"]["pending"] + mode["counts"]["stale"] for mode in modes)
        return {
            "modes": modes,
            "is_working": working > 0,
            "defaults": {"user": listed["user_default"], "project": listed["project_default"]},
            "embedders": listed["embedders"],
        }


def _declaration(form: Form) -> Json:
    """Return the fields of a declaration. An empty description clears it; other empty fields keep the mode's."""
    fields: Json = {"embedder": form.text("embedder"), "description": form.optional("description") or ""}
    if hints := form.optional("extraction_hints"):
        fields["extraction_hints"] = hints
    if (decay := form.optional("decay")) == BY_TYPE:
        by_type = {name: form.optional(f"decay_{name}") for name, _ in DECAYING_TYPES}
        fields["decay"] = {name: chosen for name, chosen in by_type.items() if chosen}
    elif decay:
        fields["decay"] = decay
    if form.is_set("prompts"):
        prompts = {step: form.optional(f"prompt_{step}") for step, _ in PROMPTED_STEPS}
        fields["prompt_overrides"] = {step: text for step, text in prompts.items() if text}
    fields |= {"searchable": not form.is_set("unsearchable"), "private": form.is_set("private")}
    return fields | {name: True for name in ("is_default", "for_project") if form.is_set(name)}
