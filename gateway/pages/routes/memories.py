"""Memories: the list, and what is done with those that are ticked: move, undo that, forget."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from modestream_client.operations import LIST_MEMORIES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.choices import Choice, choice_of, chosen
from gateway.pages.forms import Form, read_form
from gateway.pages.labels import EMBEDDING_STATUSES, ROLES, TYPES, speaker_of
from gateway.pages.memory_filters import LIMITS, is_filtered, list_fields
from gateway.pages.pages import Pages, see
from gateway.pages.paging import pager_of
from gateway.pages.records import get_all
from gateway.pages.view import PAGES, View
from gateway.service.failures import Refused
from gateway.service.selections import Outcome

BULK_WAIT_S = 60.0
"""Seconds that a selection of 500 may take: some five when nothing else is under way."""

TYPED_FROM = 10
"""Memories from which forgetting asks for their number to be typed."""

SHOWN_BEFORE_FORGETTING = 5
"""Texts that the question whether to forget shows."""


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
    listed = await pages.service.operations.run(LIST_MEMORIES, view.call(), view.selector, fields)
    shown = {
        "rows": [(one, choice_of(one, pages.place_of(one["scope"])).value) for one in listed["items"]],
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
    """Move what is ticked; the list then offers to move it back, by modes that the form named."""
    choices, mode = chosen(form, view.scope_fields), form.text("mode")
    moving = [one for one in choices if one.mode != mode]
    outcome = Outcome(0)
    if moving:
        outcome = await pages.service.selections.move(view.call(BULK_WAIT_S), [one.selected for one in moving], mode)
    return await _done(pages, view, outcome, "moved", mode, [one.value for one in moving])


async def _undo(pages: Pages, view: View, form: Form) -> Response:
    """Move each memory back to the mode that it was in."""
    by_mode: dict[str, list[Choice]] = {}
    for one in chosen(form, view.scope_fields):
        by_mode.setdefault(one.mode, []).append(one)
    call, total = view.call(BULK_WAIT_S), Outcome(0)
    for mode, choices in by_mode.items():
        outcome = await pages.service.selections.move(call, [one.selected for one in choices], mode)
        total = Outcome(total.count + outcome.count, total.failed + outcome.failed, total.refusal or outcome.refusal)
    return await _done(pages, view, total, "moved_back")


async def _ask(pages: Pages, view: View, form: Form, error: str | None = None) -> Response:
    """Ask whether to forget what is ticked."""
    choices = chosen(form, view.scope_fields)
    places = [(one.scope, one.memory_id) for one in choices[:SHOWN_BEFORE_FORGETTING]]
    shown = [one for one in await get_all(pages.service, view.call(), places) if one is not None]
    return await pages.render(
        view,
        "memories_forget.html",
        "Forget memories",
        "memories",
        count=len(choices),
        values=[one.value for one in choices],
        shown=shown,
        speaker_of=speaker_of,
        is_typed=len(choices) >= TYPED_FROM,
        error=error,
    )


async def _forget(pages: Pages, view: View, form: Form) -> Response:
    """Forget what is ticked, for good."""
    choices = chosen(form, view.scope_fields)
    if len(choices) >= TYPED_FROM and form.optional("typed") != str(len(choices)):
        return await _ask(pages, view, form, "This is another number; nothing was forgotten.")
    call = view.call(BULK_WAIT_S)
    outcome = await pages.service.selections.forget(call, [one.selected for one in choices])
    if outcome.refusal is None:
        return see(view.again(notice="forgotten", count=outcome.count))
    return await _done(pages, view, outcome, "forgotten")


async def _done(
    pages: Pages, view: View, outcome: Outcome, notice: str, name: str = "", moved_from: Sequence[str] = ()
) -> Response:
    """Show the list again: the answer to a form, which may be sent twice, as it holds what undoes it."""
    query = {**view.query, "notice": notice, "count": str(outcome.count), "name": name}
    return await _list_page(pages, replace(view, query=query), moved_from=moved_from, outcome=outcome)
