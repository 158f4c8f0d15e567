"""Memories: the list, and moving, moving back and forgetting the ticked ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
from modestream_client.operations import LIST_MEMORIES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import EMBEDDING_STATUSES, ROLES, TYPES, speaker_of
from gateway.pages.list_addresses import LIMITS, is_filtered, list_fields, pager_of
from gateway.pages.pages import Pages, see
from gateway.pages.relations import get_all
from gateway.pages.requests import PAGES, Form, View, read_form
from gateway.service.failures import Refused
from gateway.service.memories import Outcome, Selected

BULK_WAIT_S = 60.0
"""Timeout of a selection of 500: about five seconds without other load."""

TYPED_FROM = 10
"""Memories from which their number has to be typed to forget them."""

SHOWN_BEFORE_FORGETTING = 5
"""Texts that the confirmation shows."""


class Choice(NamedTuple):
    """A row that can be ticked: a memory, its mode when it was shown, and its scope without the user."""

    memory_id: str
    mode: str
    scope: Mapping[str, str]

    @property
    def value(self) -> str:
        """The value of the row's box."""
        return orjson.dumps([self.memory_id, self.mode, self.scope]).decode()

    @property
    def selected(self) -> Selected:
        """The memory as the service selects it."""
        return Selected(self.memory_id, self.scope)


def memory_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        return await _list_page(pages, pages.view(request))

    async def act(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        actions = {"move": _move, "undo": _undo, "ask": _ask, "forget": _forget}
        action = actions.get(form.text("do"))
        if action is None:
            raise Refused("invalid_value", "there is no such action", "do")
        return await action(pages, view, form)

    return [Route(f"{PAGES}/memories", show, methods=["GET"]), Route(f"{PAGES}/memories", act, methods=["POST"])]


async def _list_page(pages: Pages, view: View, **values: Any) -> Response:
    fields = {**list_fields(view.query), "mode": view.mode or "*"}
    listed = await pages.service.operations.run(LIST_MEMORIES, view.call(), view.read_scope, fields)
    shown = {
        "rows": [
            (memory, Choice(memory["memory_id"], memory["mode"], pages.scope_of(memory)).value)
            for memory in listed["items"]
        ],
        "total": listed["total"],
        "pager": pager_of(view.query, listed["next"]),
        "is_filtered": is_filtered(view.query),
        "types": TYPES,
        "roles": ROLES,
        "statuses": EMBEDDING_STATUSES,
        "limits": LIMITS,
        "limit": fields["limit"],
        "speaker_of": speaker_of,
        "moved_from": (),
        "outcome": None,
        **values,
    }
    return await pages.render(view, "memories.html", "Memories", "memories", **shown)


async def _move(pages: Pages, view: View, form: Form) -> Response:
    """Move the ticked memories; the list then offers to move them back."""
    mode = form.text("mode")
    moving = [choice for choice in chosen(form, view.scope_fields) if choice.mode != mode]
    outcome = Outcome(0)
    if moving:
        selected = [choice.selected for choice in moving]
        outcome = await pages.service.selections.move(view.call(BULK_WAIT_S), selected, mode)
    return await _done(pages, view, outcome, "moved", mode, [choice.value for choice in moving])


async def _undo(pages: Pages, view: View, form: Form) -> Response:
    """Move each memory back to its mode when it was shown."""
    by_mode: dict[str, list[Choice]] = {}
    for choice in chosen(form, view.scope_fields):
        by_mode.setdefault(choice.mode, []).append(choice)
    call, total = view.call(BULK_WAIT_S), Outcome(0)
    for mode, choices in by_mode.items():
        outcome = await pages.service.selections.move(call, [choice.selected for choice in choices], mode)
        total = Outcome(total.count + outcome.count, total.failed + outcome.failed, total.refusal or outcome.refusal)
    return await _done(pages, view, total, "moved_back")


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
    outcome = await pages.service.selections.forget(call, [choice.selected for choice in choices])
    if outcome.refusal is None:
        return see(view.again(notice="forgotten", count=outcome.count))
    return await _done(pages, view, outcome, "forgotten")


async def _done(
    pages: Pages, view: View, outcome: Outcome, notice: str, name: str = "", moved_from: Sequence[str] = ()
) -> Response:
    """Show the list again, with the form that undoes the move."""
    query = {**view.query, "notice": notice, "count": str(outcome.count), "name": name}
    return await _list_page(pages, replace(view, query=query), moved_from=moved_from, outcome=outcome)


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
