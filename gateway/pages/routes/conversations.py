"""Conversations: the list, the turns of one a page at a time, and forgetting one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from modestream_client.operations import LIST_CONVERSATIONS, LIST_MEMORIES
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import plural, speaker_of
from gateway.pages.pages import Pages
from gateway.pages.requests import LIMITS, PAGES, Pager, View, is_filtered, list_fields, name_of, pager_of, read_form
from gateway.pages.routes.files import files_of
from gateway.pages.text_search import newest_with_text
from gateway.pages.texts import said
from gateway.service.access import may
from gateway.service.calls import Json, Refused

MAX_SAME_ID = 20
"""Projects whose conversations with the same id one page shows."""

OF = "of"
"""Parameter with the project of one conversation. No link keeps it, so the picked project stays."""

FORGET_WAIT_S = 60.0
"""Timeout of forgetting: a conversation may have tens of thousands of turns."""

TURNS_OF_PAGE = 100

TURNS_BEFORE = 10
"""Turns that are shown before the one that an address names."""


class Transcript(NamedTuple):
    """`turns` oldest first; `total` counts those of the chosen mode; `earlier` is the `at` of the part before."""

    turns: list[Json]
    total: int
    pager: Pager
    earlier: str | None


def conversation_pages(pages: Pages) -> Sequence[BaseRoute]:
    path = PAGES + "/conversations/{conversation_id}"

    async def show_all(request: Request) -> Response:
        view = pages.view(request)
        fields = {**list_fields(view.query), "mode": view.mode or "*"}
        listed = await newest_with_text(pages, view, LIST_CONVERSATIONS, fields)
        return await pages.render(
            view,
            "conversations.html",
            "Conversations",
            "conversations",
            rows=listed["items"],
            total=listed["total"],
            pager=pager_of(view.query, listed["next"]),
            searched_to=listed.get("searched_to"),
            is_filtered=is_filtered(view.query),
            limits=LIMITS,
            limit=fields["limit"],
        )

    async def show_one(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        where = replace(view, project=view.query.get(OF) or view.project)
        same_id = await _of_id(pages, where, name)
        return await pages.render(
            view,
            "conversation.html",
            same_id[0].get("title") or name,
            "conversations",
            conversation_id=name,
            same_id=same_id,
            forgettable=[each for each in same_id if may(view.caller, view.user or "", each["scope"], "manage")],
            transcript=await _transcript(pages, where, name),
            files=await files_of(pages, where, conversation_id=name),
            speaker_of=speaker_of,
            said=said,
        )

    async def ask(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        return await _question(pages, view, await _only(pages, view, name))

    async def forget(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        form, conversation = await read_form(request), await _only(pages, view, name)
        if form.optional("typed") != str(conversation["turns"]):
            return await _question(pages, view, conversation, "The number does not match. Nothing was forgotten.")
        call, selection = view.call(FORGET_WAIT_S), {"conversation_id": name}
        done = await pages.service.memories.forget_all(call, pages.scope_of(conversation), selection)
        notice = f"Forgot the conversation {name}: {plural(done['forgotten'], 'memory', 'memories')}."
        return pages.done(view.address("conversations"), notice)

    return [
        Route(f"{PAGES}/conversations", show_all, methods=["GET"]),
        Route(path, show_one, methods=["GET"]),
        Route(path + "/forget", ask, methods=["GET"]),
        Route(path + "/forget", forget, methods=["POST"]),
    ]


async def _of_id(pages: Pages, view: View, conversation_id: str) -> list[Json]:
    """Return the conversations with an id, at most one per project, of all modes. Raises Refused, `not_found`."""
    fields = {"conversation_id": conversation_id, "include_superseded": True, "limit": MAX_SAME_ID}
    listed = await pages.service.operations.run(LIST_CONVERSATIONS, view.call(), view.read_scope, fields)
    if not listed["items"]:
        where = "" if view.project is None else f" in the project {view.project}"
        message = f"this user has no conversation with this id{where}: it may have been forgotten"
        raise Refused("not_found", message, "conversation_id")
    return list(listed["items"])


async def _only(pages: Pages, view: View, conversation_id: str) -> Json:
    """Return the conversation with an id. Raises Refused if several projects have one."""
    conversation, *others = await _of_id(pages, view, conversation_id)
    if others:
        raise Refused("invalid_value", "several projects have a conversation with this id: choose one", "project")
    return conversation


async def _question(pages: Pages, view: View, conversation: Json, error: str | None = None) -> Response:
    values: dict[str, Any] = {"conversation": conversation, "error": error}
    return await pages.render(view, "conversation_forget.html", "Forget a conversation", "conversations", **values)


async def _transcript(pages: Pages, view: View, conversation_id: str) -> Transcript:
    """Load a page of a conversation; the parameter `at` is a time at which it begins. Raises Refused."""

    async def listed(**fields: Any) -> Json:
        scope = view.read_scope
        return await pages.service.operations.run(LIST_MEMORIES, view.call(), scope, {**conversation, **fields})

    conversation: dict[str, Any] = {
        "conversation_id": conversation_id,
        "mode": view.mode or "*",
        "include_superseded": True,
        "limit": TURNS_OF_PAGE,
        "order": "oldest",
    }
    at, cursor = view.query.get("at") or None, view.query.get("cursor") or None
    page_position = {"cursor": cursor} if cursor else {}
    if at is None:
        page = await listed(**page_position)
        return Transcript(page["items"], page["total"], pager_of(view.query, page["next"]), None)
    page = await listed(since=at, **page_position)
    pager = pager_of(view.query, page["next"])
    if cursor is not None:
        return Transcript(page["items"], page["total"], pager, None)
    before = await listed(until=at, order="newest", limit=TURNS_BEFORE)
    earlier = before["items"][-1]["occurred_at"] if before["next"] is not None else None
    return Transcript([*reversed(before["items"]), *page["items"]], page["total"] + before["total"], pager, earlier)
