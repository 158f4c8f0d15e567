"""One memory with its sources and successors; move, edit, correct, hide and forget it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from modestream_client.operations import LIST_MODES, SET_INTERACTION_MODE, SET_MEMORY_MODE, SET_MEMORY_VISIBILITY
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import DECAY_TIMES, INTERACTION_MODES, MODE_SOURCES, interaction_reason, kind_of, speaker_of
from gateway.pages.pages import Pages, see
from gateway.pages.relations import SIMILAR, relations_of, similar_to
from gateway.pages.requests import PAGES, Form, View, name_of, read_form
from gateway.service.access import may
from gateway.service.backend import Json
from gateway.service.failures import Refused

LABELS: Mapping[str, Any] = {
    "decay_times": DECAY_TIMES,
    "interaction_modes": INTERACTION_MODES,
    "interaction_reason": interaction_reason,
    "kind_of": kind_of,
    "mode_sources": MODE_SOURCES,
    "speaker_of": speaker_of,
}
"""Labels that the templates of a memory use."""


def one_memory_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    path = PAGES + "/memories/{memory_id}"

    async def show(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        return await _memory_page(pages, view, record)

    async def act(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        actions = {"move": _move, "edit": _edit, "restore": _restore, "correct": _correct, "filter": _filter}
        action = actions.get(form.text("do"))
        if action is None:
            raise Refused("invalid_value", "there is no such action", "do")
        return await action(pages, view, await _record(pages, view, name_of(request, "memory_id")), form)

    async def ask(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        relations = await relations_of(pages.service, view.call(), record)
        return await pages.render(
            view, "memory_forget.html", "Forget a memory", "memories", memory=record, relations=relations, **LABELS
        )

    async def forget(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        done = await pages.service.memories.forget(view.call(), pages.scope_of(record), record["memory_id"])
        return see(view.address("memories", notice="forgotten", count=done["forgotten"]))

    return [
        Route(path, show, methods=["GET"]),
        Route(path, act, methods=["POST"]),
        Route(path + "/forget", ask, methods=["GET"]),
        Route(path + "/forget", forget, methods=["POST"]),
    ]


async def _record(pages: Pages, view: View, memory_id: str) -> Json:
    """Return a record of the chosen project, else of any: a link stays valid when another project is picked."""
    try:
        return await pages.service.memories.get(view.call(), view.write_scope, memory_id)
    except Refused as refused:
        if refused.code != "not_found" or view.project is None:
            raise
        return await pages.service.memories.get(view.call(), {}, memory_id)


async def _memory_page(pages: Pages, view: View, record: Json, text_before: str | None = None) -> Response:
    call = view.call()
    relations = await relations_of(pages.service, call, record)
    similar = None
    if view.query.get("similar"):
        similar = (await similar_to(pages.service, call, record))[:SIMILAR]
    declared = await pages.service.operations.run(LIST_MODES, call, pages.scope_of(record))
    return await pages.render(
        view,
        "memory.html",
        "Memory",
        "memories",
        memory=record,
        relations=relations,
        similar=similar,
        modes=[mode["name"] for mode in declared["modes"]],
        may_manage=may(view.caller, view.user or "", record["scope"], "manage"),
        may_write=may(view.caller, view.user or "", record["scope"], "write"),
        text_hash=_text_hash(record),
        text_before=None if text_before is None else orjson.dumps(text_before).decode(),
        moved_from=view.query.get("moved_from"),
        **LABELS,
    )


async def _move(pages: Pages, view: View, record: Json, form: Form) -> Response:
    mode, before = form.text("mode"), record["mode"]
    address = ("memories", record["memory_id"])
    if mode == before:
        return see(view.address(*address))
    await pages.service.memories.change(
        SET_MEMORY_MODE, view.call(), pages.scope_of(record), record["memory_id"], {"mode": mode}
    )
    undo = None if form.is_set("is_undo") else before
    return see(view.address(*address, notice="moved_one", name=mode, moved_from=undo))


async def _correct(pages: Pages, view: View, record: Json, form: Form) -> Response:
    scope, memory_id = pages.scope_of(record), record["memory_id"]
    fields = {"interaction_mode": form.text("interaction_mode")}
    await pages.service.memories.change(SET_INTERACTION_MODE, view.call(), scope, memory_id, fields)
    return see(view.address("memories", memory_id, notice="corrected"))


async def _filter(pages: Pages, view: View, record: Json, form: Form) -> Response:
    scope, memory_id = pages.scope_of(record), record["memory_id"]
    filters = {"searchable": not form.is_set("unsearchable"), "private": form.is_set("private")}
    await pages.service.memories.change(SET_MEMORY_VISIBILITY, view.call(), scope, memory_id, filters)
    return see(view.address("memories", memory_id, notice="filtered"))


async def _edit(pages: Pages, view: View, record: Json, form: Form) -> Response:
    """Change a turn's text, and show the page with a form that undoes it. Sent again, the edit changes nothing."""
    text = (form.all("text") or [""])[-1].replace("\r\n", "\n")
    if text == record["text"].replace("\r\n", "\n"):
        return see(view.address("memories", record["memory_id"]))
    if form.text("text_hash") != _text_hash(record):
        raise Refused("conflict", "the text has changed since the page was loaded; load it again", "text")
    edited = await pages.service.memories.edit(view.call(), pages.scope_of(record), record["memory_id"], text)
    # No redirect: records have only the current text, and the previous one belongs in no address.
    shown = replace(view, query={**view.query, "notice": "edited"})
    return await _memory_page(pages, shown, edited, text_before=record["text"])


async def _restore(pages: Pages, view: View, record: Json, form: Form) -> Response:
    try:
        text = orjson.loads(form.text("text_before"))
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise Refused("invalid_value", "the previous text can't be read; edit the memory instead", "text_before")
    await pages.service.memories.edit(view.call(), pages.scope_of(record), record["memory_id"], text)
    return see(view.address("memories", record["memory_id"], notice="restored"))


def _text_hash(record: Json) -> str:
    """Return the hash of the current text."""
    return str(next(version["text_hash"] for version in record["versions"] if version["current"]))
