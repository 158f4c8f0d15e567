"""Dead letters: what could not be processed, why, and publishing it again."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import Form, read_form
from gateway.pages.pages import Pages, see
from gateway.pages.view import PAGES, View
from gateway.service.calls import Call
from gateway.service.dead_letter import DeadLetter, LetterPlace, shown
from gateway.service.dead_letters import LetterFilter
from gateway.service.failures import Refused

PAGE = "dead-letters"

LETTERS_SHOWN = 50
"""Letters of one page."""

WHOLE_CHARS = 100_000
"""Characters of a value that its page shows: more than the longest turn."""

REPLAY_S = 30.0
"""Seconds that publishing may take; what is left is published by asking again."""

CONFIRMED_FROM = 100
"""Letters from which their number has to be typed before they are published."""


def dead_letter_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    letters = pages.service.dead_letters

    async def show(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        wanted = _filter(view)
        page = letters.page(view.caller, wanted, LETTERS_SHOWN, view.query.get("cursor") or None)
        return await pages.render(
            view,
            "dead_letters.html",
            "Dead letters",
            PAGE,
            page=page,
            tally=letters.tally(view.caller, wanted),
            letters=letters,
            filters=_filters(view),
        )

    async def show_one(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        letter = letters.find(view.caller, request.path_params["letter"])
        record = await letters.whole(letter)
        value = None if record is None else shown(record.value or b"", WHOLE_CHARS)
        return await pages.render(
            view,
            "dead_letter.html",
            f"Dead letter {letter.place}",
            PAGE,
            letter=letter,
            letters=letters,
            value=value,
            headers=[] if record is None else [(name, shown(given or b"", 200)) for name, given in record.headers],
        )

    async def ask(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        chosen = _chosen(pages, view)
        return await pages.render(
            view,
            "dead_letters_replay.html",
            "Publish again",
            PAGE,
            chosen=chosen,
            letter=view.query.get("letter") or None,
            until=_order_text(chosen),
            filters=_filters(view),
            is_typed=len(chosen) >= CONFIRMED_FROM,
        )

    async def replay(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        form = await read_form(request)
        until = None if view.query.get("letter") else form.text("until")
        chosen = _chosen(pages, view, until)
        _require_confirmed(form, len(chosen))
        call = Call.within(view.caller, view.user or "", REPLAY_S, view.request_id)
        count = await letters.replay(call, chosen)
        return see(view.address(PAGE, notice="replayed", count=count, **_filters(view)))

    return [
        Route(f"{PAGES}/{PAGE}", show, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/replay", ask, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/replay", replay, methods=["POST"]),
        Route(f"{PAGES}/{PAGE}/{{letter}}", show_one, methods=["GET"]),
    ]


def _filters(view: View) -> dict[str, str | None]:
    """Return the filters of this page's address, to keep them in another one."""
    return {name: view.query.get(name) or None for name in ("code", "topic")}


def _filter(view: View, until: tuple[int, LetterPlace] | None = None) -> LetterFilter:
    return LetterFilter(view.user, view.query.get("code") or None, view.query.get("topic") or None, until)


def _chosen(pages: Pages, view: View, until: str | None = None) -> list[DeadLetter]:
    """Return the one letter that the address names, or all of its filters that can be published again.

    `until`: no letter that came after the page that asked.
    """
    letters = pages.service.dead_letters
    if view.query.get("letter"):
        return [letters.find(view.caller, view.query["letter"])]
    return letters.tally(view.caller, _filter(view, _order(until))).replayable


def _order_text(chosen: Sequence[DeadLetter]) -> str:
    newest = max((one.order for one in chosen), default=None)
    return "" if newest is None else f"{newest[0]}_{newest[1]}"


def _order(text: str | None) -> tuple[int, LetterPlace] | None:
    if text is None:
        return None
    time, _, place_text = text.partition("_")
    place = LetterPlace.parse(place_text)
    if place is None or not time.isdecimal():
        raise Refused("invalid_value", "this page was not asked by the page before: begin there", "until")
    return int(time), place


def _require_confirmed(form: Form, count: int) -> None:
    if count >= CONFIRMED_FROM and form.optional("typed") != str(count):
        raise Refused("invalid_value", f"type the number of letters, {count}, to publish them again", "typed")
