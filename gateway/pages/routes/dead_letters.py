"""Dead letters: records that could not be processed, with reasons, and publishing them again."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import plural
from gateway.pages.pages import Pages
from gateway.pages.requests import PAGES, View, read_form
from gateway.service.calls import Call, Refused
from gateway.service.dead_letters import DeadLetter, LetterFilter, LetterPosition, shown

PAGE = "dead-letters"

LETTERS_SHOWN = 50

WHOLE_CHARS = 100_000
"""Characters of a value on its page: more than the longest turn."""

REPLAY_S = 30.0
"""Timeout of publishing; the rest is published by confirming again."""

CONFIRMED_FROM = 100
"""Letters from which their number has to be typed to publish them."""


def dead_letter_pages(pages: Pages) -> Sequence[BaseRoute]:
    letters = pages.service.dead_letters

    async def show(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        letter_filter = _filter(view)
        page = letters.page(view.caller, letter_filter, LETTERS_SHOWN, view.query.get("cursor") or None)
        return await pages.render(
            view,
            "dead_letters.html",
            "Dead letters",
            PAGE,
            page=page,
            tally=letters.tally(view.caller, letter_filter),
            letters=letters,
            filters=_filters(view),
        )

    async def show_one(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        letter = letters.find(view.caller, request.path_params["letter"])
        record = await letters.whole(letter)
        whole = b"" if record is None else record.value or b""
        value = None if record is None else shown(whole, WHOLE_CHARS)
        # What is not shown as it is can't be edited: not UTF-8, or longer.
        is_editable = record is not None and len(whole) <= WHOLE_CHARS and shown(whole, WHOLE_CHARS).encode() == whole
        return await pages.render(
            view,
            "dead_letter.html",
            f"Dead letter {letter.position}",
            PAGE,
            letter=letter,
            letters=letters,
            value=value,
            is_editable=is_editable and letters.obstacle(view.caller, letter) is None,
            may_dismiss=letters.may_manage(view.caller, letter),
            headers=[] if record is None else [(name, shown(content or b"", 200)) for name, content in record.headers],
        )

    async def ask(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        chosen = _chosen(pages, view)
        newest: tuple[object, ...] = max((letter.order for letter in chosen), default=())
        return await pages.render(
            view,
            "dead_letters_replay.html",
            "Publish again",
            PAGE,
            chosen=chosen,
            letter=view.query.get("letter") or None,
            until="_".join(map(str, newest)),
            filters=_filters(view),
            is_typed=len(chosen) >= CONFIRMED_FROM,
        )

    async def replay(request: Request) -> Response:
        view = pages.view(request)
        await letters.begin()
        form = await read_form(request)
        until = None if view.query.get("letter") else form.text("until")
        chosen = _chosen(pages, view, until)
        if len(chosen) >= CONFIRMED_FROM and form.optional("typed") != str(len(chosen)):
            message = f"type the number of letters, {len(chosen)}, to publish them again"
            raise Refused("invalid_value", message, "typed")
        call = Call.within(view.caller, view.user or "", REPLAY_S, view.request_id)
        count = await letters.replay(call, chosen)
        notice = f"Published {plural(count, 'record')} again. The outcome shows here within seconds."
        return pages.done(view.address(PAGE, **_filters(view)), notice)

    async def act(request: Request) -> Response:
        view, form = pages.view(request), await read_form(request)
        await letters.begin()
        letter = letters.find(view.caller, request.path_params["letter"])
        call = Call.within(view.caller, view.user or "", REPLAY_S, view.request_id)
        if form.text("do") == "edit":
            value = (form.all("value") or [""])[-1].replace("\r\n", "\n")
            await letters.replay_edited(call, letter, value.encode())
            notice = "Published the edited record. The outcome shows here within seconds."
            return pages.done(view.address(PAGE, str(letter.position)), notice)
        is_dismissed = form.text("do") == "dismiss"
        letters.dismiss(call, letter, dismissed=is_dismissed)

        async def undo(by: View) -> Response:
            again = Call.within(by.caller, by.user or "", REPLAY_S, by.request_id)
            letters.dismiss(again, letter, dismissed=not is_dismissed)
            return pages.done(view.address(PAGE), "Undone.")

        notice = "Dismissed the letter; the topic keeps it." if is_dismissed else "The letter is listed again."
        return pages.done(view.address(PAGE), notice, undo=undo)

    return [
        Route(f"{PAGES}/{PAGE}", show, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/replay", ask, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/replay", replay, methods=["POST"]),
        Route(f"{PAGES}/{PAGE}/{{letter}}", show_one, methods=["GET"]),
        Route(f"{PAGES}/{PAGE}/{{letter}}", act, methods=["POST"]),
    ]


def _filters(view: View) -> dict[str, str | None]:
    """Return the filters of the address, for links that keep them."""
    return {name: view.query.get(name) or None for name in ("code", "topic", "dismissed")}


def _filter(view: View, until: tuple[int, LetterPosition] | None = None) -> LetterFilter:
    code, topic = view.query.get("code") or None, view.query.get("topic") or None
    return LetterFilter(view.user, code, topic, until, dismissed=bool(view.query.get("dismissed")))


def _chosen(pages: Pages, view: View, until: str | None = None) -> list[DeadLetter]:
    """Return the letter that the address names, or all replayable ones of its filters.

    `until` excludes the letters that came after the confirmation page.
    """
    letters = pages.service.dead_letters
    if view.query.get("letter"):
        return [letters.find(view.caller, view.query["letter"])]
    newest = None
    if until is not None:
        time, _, letter_id = until.partition("_")
        position = LetterPosition.parse(letter_id)
        if position is None or not time.isdecimal():
            raise Refused("invalid_value", "this page must be opened from the list of dead letters", "until")
        newest = int(time), position
    return letters.tally(view.caller, _filter(view, newest)).replayable
