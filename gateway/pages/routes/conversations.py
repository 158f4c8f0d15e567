"""Conversations: the list, and one as it was said; forget it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from modestream_client.operations import LIST_CONVERSATIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import read_form
from gateway.pages.labels import speaker_of
from gateway.pages.memory_filters import LIMITS, is_filtered, list_fields
from gateway.pages.pages import Pages, see
from gateway.pages.paging import pager_of
from gateway.pages.path_names import name_of
from gateway.pages.transcripts import transcript_of
from gateway.pages.view import PAGES, View
from gateway.service.access import may
from gateway.service.failures import Refused
from gateway.service.wire import Json

MAX_PLACES = 20
"""Projects in which one page shows a conversation of the same id."""

OF = "of"
"""Parameter with the project of one conversation. No link keeps it: the project in the head stays as it was chosen."""

FORGET_WAIT_S = 60.0
"""Seconds that forgetting may take: a conversation may have tens of thousands of turns."""


def conversation_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    path = PAGES + "/conversations/{conversation_id}"

    async def show_all(request: Request) -> Response:
        view = pages.view(request)
        fields = {**list_fields(view.query), "mode": view.mode or "*"}
        listed = await pages.service.operations.run(LIST_CONVERSATIONS, view.call(), view.selector, fields)
        return await pages.render(
            view,
            "conversations.html",
            "Conversations",
            "conversations",
            rows=listed["items"],
            total=listed["total"],
            pager=pager_of(view.query, listed["next"]),
            is_filtered=is_filtered(view.query),
            limits=LIMITS,
            limit=fields["limit"],
        )

    async def show_one(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        where = replace(view, project=view.query.get(OF) or view.project)
        found = await _found(pages, where, name)
        transcript = await transcript_of(pages.service, where, name)
        return await pages.render(
            view,
            "conversation.html",
            name,
            "conversations",
            conversation_id=name,
            found=found,
            forgettable=[one for one in found if may(view.caller, view.user or "", one["scope"], "manage")],
            transcript=transcript,
            speaker_of=speaker_of,
        )

    async def ask(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        return await _question(pages, view, await _only(pages, view, name))

    async def forget(request: Request) -> Response:
        view, name = pages.view(request), name_of(request, "conversation_id")
        form, one = await read_form(request), await _only(pages, view, name)
        if form.optional("typed") != str(one["turns"]):
            return await _question(pages, view, one, "This is another number; nothing was forgotten.")
        what = {"conversation_id": name}
        done = await pages.service.memories.forget_all(view.call(FORGET_WAIT_S), pages.place_of(one["scope"]), what)
        return see(view.address("conversations", notice="forgotten", count=done["forgotten"]))

    return [
        Route(f"{PAGES}/conversations", show_all, methods=["GET"]),
        Route(path, show_one, methods=["GET"]),
        Route(path + "/forget", ask, methods=["GET"]),
        Route(path + "/forget", forget, methods=["POST"]),
    ]


async def _found(pages: Pages, view: View, conversation_id: str) -> list[Json]:
    """Return the conversations of this id, one of each project, whatever their modes. Raises Refused, `not_found`."""
    fields = {"conversation_id": conversation_id, "include_superseded": True, "limit": MAX_PLACES}
    listed = await pages.service.operations.run(LIST_CONVERSATIONS, view.call(), view.selector, fields)
    if not listed["items"]:
        where = "" if view.project is None else f" in the project {view.project}"
        message = f"this user has no conversation of that id{where}: it may have been forgotten"
        raise Refused("not_found", message, "conversation_id")
    return list(listed["items"])


async def _only(pages: Pages, view: View, conversation_id: str) -> Json:
    """Return the conversation that is to be forgotten. Raises Refused where several projects have one of this id."""
    found = await _found(pages, view, conversation_id)
    if len(found) > 1:
        raise Refused("invalid_value", "several projects have a conversation of this id: choose one", "project")
    return found[0]


async def _question(pages: Pages, view: View, one: Json, error: str | None = None) -> Response:
    values: dict[str, Any] = {"conversation": one, "error": error}
    return await pages.render(view, "conversation_forget.html", "Forget a conversation", "conversations", **values)
