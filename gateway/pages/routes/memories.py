"""Memories: the list, with its ticked ones; one with its sources and successors; move, edit, correct, hide, forget."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
from modestream_client.operations import (
    LIST_CONVERSATIONS,
    LIST_MEMORIES,
    LIST_MODES,
    RETRY_FAILED,
    SET_INTERACTION_MODE,
    SET_MEMORY_MODE,
    SET_MEMORY_VISIBILITY,
)
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import (
    DECAY_TIMES,
    EMBEDDING_STATUSES,
    INTERACTION_MODES,
    MODE_SOURCES,
    ROLES,
    TYPE_CHOICES,
    interaction_reason,
    kind_of,
    plural,
    speaker_of,
)
from gateway.pages.pages import Pages, see, worker_may_be_away
from gateway.pages.relations import SIMILAR, get_all, relations_of, similar_to, versions_of
from gateway.pages.requests import LIMITS, PAGES, Form, View, is_filtered, list_fields, name_of, pager_of, read_form
from gateway.pages.text_search import newest_with_text
from gateway.pages.texts import marked_text
from gateway.service.access import may
from gateway.service.calls import Call, Json, Refused
from gateway.service.memories import Outcome, Selected

BULK_WAIT_S = 60.0
"""Timeout of a selection of 500: about five seconds without other load."""

TYPED_FROM = 10
"""Memories from which their number has to be typed to forget them."""

TITLE_CHARS = 60

SHOWN_BEFORE_FORGETTING = 5


class Choice(NamedTuple):
    """A row that can be ticked: a memory, its mode when it was shown, and its scope without the user."""

    memory_id: str
    mode: str
    scope: Mapping[str, str]

    @property
    def value(self) -> str:
        return orjson.dumps([self.memory_id, self.mode, self.scope]).decode()

    @property
    def selected(self) -> Selected:
        return Selected(self.memory_id, self.scope)


def memory_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        return await _list_page(pages, pages.view(request))

    async def act(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        actions = {"move": _move, "ask": _ask, "forget": _forget, "export": _export}
        action = actions.get(form.text("do"))
        if action is None:
            raise Refused("invalid_value", "there is no such action", "do")
        return await action(pages, view, form)

    return [Route(f"{PAGES}/memories", show, methods=["GET"]), Route(f"{PAGES}/memories", act, methods=["POST"])]


async def _list_page(pages: Pages, view: View) -> Response:
    fields = {**list_fields(view.query), "mode": view.mode or "*"}
    asked = {**fields, "facets": "cursor" not in fields}
    listed = await newest_with_text(pages, view, LIST_MEMORIES, asked)
    shown = {
        "rows": [
            (memory, Choice(memory["memory_id"], memory["mode"], pages.scope_of(memory)).value)
            for memory in listed["items"]
        ],
        "total": listed["total"],
        "pager": pager_of(view.query, listed["next"]),
        "searched_to": listed.get("searched_to"),
        "facets": facets_of(listed.get("facets") or {}, view),
        "is_filtered": is_filtered(view.query),
        "types": TYPE_CHOICES,
        "roles": ROLES,
        "statuses": EMBEDDING_STATUSES,
        "limits": LIMITS,
        "limit": fields["limit"],
        "speaker_of": speaker_of,
        "marked_text": marked_text,
    }
    return await pages.render(view, "memories.html", "Memories", "memories", **shown)


FACETS = (
    ("mode", "Mode", "mode"),
    ("speaker", "Speaker", "speaker"),
    ("conversation", "Conversation", "conversation_id"),
    ("type", "Type", "types"),
)
"""Facets of a list: their name in the answer, their label, and the parameter that narrows the list."""


def facets_of(counts: Mapping[str, Mapping[str, int]], view: View) -> list[tuple[str, str, list[tuple[str, int]]]]:
    """Return label, parameter and values with counts of the facets by which the list can be narrowed."""
    several = [(label, parameter, counts.get(name, {})) for name, label, parameter in FACETS]
    return [
        (label, parameter, list(values.items()))
        for label, parameter, values in several
        if len(values) > 1 and not view.query.get(parameter)
    ]


async def _move(pages: Pages, view: View, form: Form) -> Response:
    """Move the ticked memories; the notice offers to move them back."""
    mode = form.text("mode")
    moving = [choice for choice in chosen(form, view.scope_fields) if choice.mode != mode]
    outcome = Outcome(0)
    if moving:
        selected = [choice.selected for choice in moving]
        outcome = await pages.service.memories.move_selected(view.call(BULK_WAIT_S), selected, mode)

    async def undo(by: View) -> Response:
        return await _move_back(pages, replace(view, caller=by.caller), moving)

    notice = _told(f"Moved {plural(outcome.count, 'memory', 'memories')} to {mode}.", outcome)
    return pages.done(view.again(), notice, undo=undo if moving else None)


async def _move_back(pages: Pages, view: View, moved: Sequence[Choice]) -> Response:
    """Move each memory back to its mode when it was shown."""
    by_mode: dict[str, list[Choice]] = {}
    for choice in moved:
        by_mode.setdefault(choice.mode, []).append(choice)
    call, total = view.call(BULK_WAIT_S), Outcome(0)
    for mode, choices in by_mode.items():
        outcome = await pages.service.memories.move_selected(call, [choice.selected for choice in choices], mode)
        total = Outcome(total.count + outcome.count, total.failed + outcome.failed, total.refusal or outcome.refusal)
    return pages.done(view.again(), _told(f"Moved {plural(total.count, 'memory', 'memories')} back.", total))


async def _ask(pages: Pages, view: View, form: Form, error: str | None = None) -> Response:
    """Ask for confirmation before forgetting."""
    choices = chosen(form, view.scope_fields)
    scopes_and_ids = [(choice.scope, choice.memory_id) for choice in choices[:SHOWN_BEFORE_FORGETTING]]
    records = await get_all(pages.service, view.call(), scopes_and_ids)
    return await pages.render(
        view,
        "memories_forget.html",
        "Forget memories",
        "memories",
        count=len(choices),
        values=[choice.value for choice in choices],
        shown=[record for record in records if record is not None],
        speaker_of=speaker_of,
        is_typed=len(choices) >= TYPED_FROM,
        error=error,
    )


async def _forget(pages: Pages, view: View, form: Form) -> Response:
    choices = chosen(form, view.scope_fields)
    if len(choices) >= TYPED_FROM and form.optional("typed") != str(len(choices)):
        return await _ask(pages, view, form, "The number does not match. Nothing was forgotten.")
    call = view.call(BULK_WAIT_S)
    outcome = await pages.service.memories.forget_selected(call, [choice.selected for choice in choices])
    return pages.done(view.again(), _told(f"Forgot {plural(outcome.count, 'memory', 'memories')}.", outcome))


async def _export(pages: Pages, view: View, form: Form) -> Response:
    """Return the turns of the ticked memories as JSON lines."""
    choices = chosen(form, view.scope_fields)
    records = await get_all(pages.service, view.call(), [(choice.scope, choice.memory_id) for choice in choices])
    turns = await pages.service.export.selected(view.call(), [record for record in records if record is not None])
    body = b"".join(to_json(turn) + b"\n" for turn in turns)
    headers = {"Content-Disposition": 'attachment; filename="selected.jsonl"'}
    return Response(body, media_type="application/x-ndjson", headers=headers)


def _told(notice: str, outcome: Outcome) -> str:
    """Return a notice that includes failures."""
    if outcome.refusal is None:
        return notice
    return f"{notice} {plural(outcome.failed, 'memory', 'memories')} could not be changed: {outcome.refusal.message}."


def chosen(form: Form, scope_fields: frozenset[str]) -> Sequence[Choice]:
    """Return the ticked memories. Raises Refused if there are none, and for values of another origin."""
    choices = [_parsed(value, scope_fields) for value in form.all("selected")]
    if not choices:
        raise Refused("invalid_value", "select at least one memory: go back and tick its box", "selected")
    return choices


def _parsed(value: str, scope_fields: frozenset[str]) -> Choice:
    try:
        memory_id, mode, scope = orjson.loads(value)
        is_sound = all(isinstance(text, str) for text in (memory_id, mode, *scope, *scope.values()))
    except (ValueError, TypeError, AttributeError):
        is_sound = False
    if not is_sound or not scope_fields.issuperset(scope):
        raise Refused("invalid_value", "this selection can't be read; load the list again", "selected")
    return Choice(memory_id, mode, scope)


LABELS: Mapping[str, Any] = {
    "decay_times": DECAY_TIMES,
    "interaction_modes": INTERACTION_MODES,
    "interaction_reason": interaction_reason,
    "kind_of": kind_of,
    "mode_sources": MODE_SOURCES,
    "speaker_of": speaker_of,
}


def one_memory_pages(pages: Pages) -> Sequence[BaseRoute]:
    path = PAGES + "/memories/{memory_id}"

    async def show(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        return await _memory_page(pages, view, record)

    async def act(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        actions = {
            "move": _move_one,
            "edit": _edit,
            "correct": _correct,
            "filter": _filter,
            "hide": _hide_or_show,
            "retry": _retry,
            "show": _hide_or_show,
        }
        action = actions.get(form.text("do"))
        if action is None:
            raise Refused("invalid_value", "there is no such action", "do")
        return await action(pages, view, await _record(pages, view, name_of(request, "memory_id")), form)

    async def ask(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        relations = await relations_of(pages.service, view.call(), record)
        return await pages.render(
            view, "memory_forget.html", "Forget a memory", "memory", memory=record, relations=relations, **LABELS
        )

    async def forget(request: Request) -> Response:
        view = pages.view(request)
        record = await _record(pages, view, name_of(request, "memory_id"))
        done = await pages.service.memories.forget(view.call(), pages.scope_of(record), record["memory_id"])
        notice = f"Forgot {plural(done['forgotten'], 'memory', 'memories')}."
        return pages.done(view.address("memories"), notice)

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


async def _title(pages: Pages, call: Call, record: Json) -> str | None:
    """Return the title of a memory's conversation, its id if it has none."""
    if not (conversation_id := record.get("conversation_id")):
        return None
    fields = {"conversation_id": conversation_id, "include_superseded": True, "limit": 1}
    scope = pages.scope_of(record)
    with worker_may_be_away():
        for conversation in (await pages.service.operations.run(LIST_CONVERSATIONS, call, scope, fields))["items"]:
            return str(conversation.get("title") or conversation_id)
    return str(conversation_id)


async def _memory_page(pages: Pages, view: View, record: Json) -> Response:
    call = view.call()
    relations, versions, conversation = await asyncio.gather(
        relations_of(pages.service, call, record), versions_of(pages.service, call, record), _title(pages, call, record)
    )
    similar = None
    if view.query.get("similar"):
        found = await similar_to(pages.service, call, record)
        # Neighbours of one conversation are always alike: those of others say more.
        similar = [hit for hit in found if hit["conversation_id"] != record.get("conversation_id")][:SIMILAR]
    declared = await pages.service.operations.run(LIST_MODES, call, pages.scope_of(record))
    return await pages.render(
        view,
        "memory.html",
        title_of(record["text"]),
        "memory",
        memory=record,
        relations=relations,
        versions=versions,
        conversation=conversation,
        similar=similar,
        modes=[mode["name"] for mode in declared["modes"]],
        may_manage=may(view.caller, view.user or "", record["scope"], "manage"),
        may_write=may(view.caller, view.user or "", record["scope"], "write"),
        text_hash=_text_hash(record),
        **LABELS,
    )


async def _move_one(pages: Pages, view: View, record: Json, form: Form) -> Response:
    return await _moved_one(pages, view, record, form.text("mode"))


async def _moved_one(pages: Pages, view: View, record: Json, mode: str) -> Response:
    scope, memory_id, before = pages.scope_of(record), record["memory_id"], record["mode"]
    if mode == before:
        return see(view.address("memories", memory_id))
    await pages.service.memories.change(SET_MEMORY_MODE, view.call(), scope, memory_id, {"mode": mode})

    async def undo(by: View) -> Response:
        return await _moved_one(pages, replace(view, caller=by.caller), {**record, "mode": mode}, before)

    return pages.done(view.address("memories", memory_id), f"Moved to {mode}.", undo=undo)


async def _correct(pages: Pages, view: View, record: Json, form: Form) -> Response:
    scope, memory_id = pages.scope_of(record), record["memory_id"]
    fields = {"interaction_mode": form.text("interaction_mode")}
    await pages.service.memories.change(SET_INTERACTION_MODE, view.call(), scope, memory_id, fields)
    return pages.done(view.address("memories", memory_id), "Corrected what the turn is for.")


async def _filter(pages: Pages, view: View, record: Json, form: Form) -> Response:
    filters = {"searchable": not form.is_set("unsearchable"), "private": form.is_set("private")}
    return await _filtered(pages, view, record, filters, "Saved who may find it.")


async def _hide_or_show(pages: Pages, view: View, record: Json, form: Form) -> Response:
    shown = form.text("do") == "show"
    filters = {**(record.get("own_visibility") or {"private": False}), "searchable": shown}
    notice = "Searches find it again." if shown else "Hidden: no search finds it any more."
    return await _filtered(pages, view, record, filters, notice)


async def _filtered(pages: Pages, view: View, record: Json, filters: Json, notice: str) -> Response:
    scope, memory_id = pages.scope_of(record), record["memory_id"]
    await pages.service.memories.change(SET_MEMORY_VISIBILITY, view.call(), scope, memory_id, filters)
    before = record.get("own_visibility") or {"searchable": True, "private": False}

    async def undo(by: View) -> Response:
        return await _filtered(
            pages, replace(view, caller=by.caller), {**record, "own_visibility": filters}, before, "Undone."
        )

    return pages.done(view.address("memories", memory_id), notice, undo=undo)


async def _retry(pages: Pages, view: View, record: Json, form: Form) -> Response:  # noqa: ARG001
    """Have failed files of the project read again."""
    await pages.service.operations.start(RETRY_FAILED, view.call(), pages.scope_of(record), {})
    return pages.done(view.address("memories", record["memory_id"]), "Files that failed are read again.")


async def _edit(pages: Pages, view: View, record: Json, form: Form) -> Response:
    """Change a turn's text; the notice offers the text before. Sent again, the edit changes nothing."""
    text = (form.all("text") or [""])[-1].replace("\r\n", "\n")
    if text == record["text"].replace("\r\n", "\n"):
        return see(view.address("memories", record["memory_id"]))
    if form.text("text_hash") != _text_hash(record):
        raise Refused(
            "conflict", "the text has changed since the page was loaded: copy yours, and load the page again", "text"
        )
    return await _edited(pages, view, record, text, "Saved the text as a new version.")


async def _edited(pages: Pages, view: View, record: Json, text: str, notice: str) -> Response:
    await pages.service.memories.edit(view.call(), pages.scope_of(record), record["memory_id"], text)

    async def undo(by: View) -> Response:
        now = {**record, "text": text}
        return await _edited(pages, replace(view, caller=by.caller), now, record["text"], "Restored the previous text.")

    return pages.done(view.address("memories", record["memory_id"]), notice, undo=undo)


def title_of(text: str) -> str:
    """Return the first words of a text, for the title of its page."""
    first = text.strip().partition("\n")[0]
    return first if len(first) <= TITLE_CHARS else first[:TITLE_CHARS].rpartition(" ")[0] + " …"


def _text_hash(record: Json) -> str:
    return str(next(version["text_hash"] for version in record["versions"] if version["current"]))
