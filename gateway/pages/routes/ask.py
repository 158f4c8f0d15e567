"""Ask: a question as a client would ask it, with why each hit was found, in other modes, and as a context."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from modestream_client.operations import ASSEMBLE_CONTEXT, SEARCH_MEMORIES
from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.bars import signed_bars
from gateway.pages.contexts import PackedContext
from gateway.pages.marks import excerpt, pieces_of
from gateway.pages.pages import Pages
from gateway.pages.view import PAGES, View
from gateway.service.failures import Refused
from gateway.service.wire import Json

SHOWN = ("hits", "modes", "context")
"""The three ways of looking at a question."""

TOP_K = 10
BESIDE_TOP_K = 5
"""Hits of each mode where several stand side by side."""

MAX_BESIDE = 8
"""Modes side by side, those with most memories."""

MAX_DROPPED = 10
"""Memories that were left out and are shown with their text."""

AROUND_PASSAGE_CHARS = 120
"""Characters of a long text before and after its best passage that are shown unfolded: a sentence or two."""

BEGINNING = "where every memory begins"
"""The one ground that says nothing about a hit: it is the same for all."""

MATTERS = 0.1
"""Log-odds from which a ground is told in words: it changes a score by 2.5 points of a hundred at most."""

TOLD = 3
"""Grounds told in words, for and against."""


def ask_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    asked = Questions(pages)

    async def show(request: Request) -> Response:
        view = pages.view(request)
        shown = view.query.get("show", SHOWN[0])
        values: Json = {"shown": shown if shown in SHOWN else SHOWN[0], "query": view.query.get("q", "").strip()}
        if values["query"]:
            values |= await {"hits": asked.hits, "modes": asked.modes, "context": asked.context}[values["shown"]](view)
        return await pages.render(view, "ask.html", "Ask", "ask", **values)

    return [Route(f"{PAGES}/ask", show)]


class Questions:
    """Asks what the address says, and gives a template what it shows."""

    def __init__(self, pages: Pages) -> None:
        self._service = pages.service

    async def hits(self, view: View) -> Json:
        """Search in the chosen mode, or in the one that the scope is in; each hit has its contributions."""
        fields = {**_question(view), "mode": view.mode, "top_k": _number(view, "top_k", TOP_K), "explain": True}
        answer = await self._service.operations.run(SEARCH_MEMORIES, view.call(), view.selector, fields)
        hits = [{**_cut(hit), **_explained(hit.get("contributions") or {})} for hit in answer["hits"]]
        sent = {name: value for name, value in fields.items() if value is not None}
        return {"answer": answer, "hits": hits, "sent": _body(view, sent)}

    async def modes(self, view: View) -> Json:
        """Search in every mode by itself, side by side: their scores are of different spaces."""
        boundary = await self._service.users.boundary(view.call()) or {}
        counts = {name: int(mode["memories"]) for name, mode in boundary.get("modes", {}).items()}
        names = sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])[:MAX_BESIDE]
        fields = {**_question(view), "top_k": BESIDE_TOP_K}
        call = view.call()
        answers = await asyncio.gather(
            *(
                self._service.operations.run(SEARCH_MEMORIES, call, view.selector, {**fields, "mode": name})
                for name in names
            )
        )
        hits = [[_cut(hit) for hit in answer["hits"]] for answer in answers]
        return {"columns": [{"mode": name, "hits": found} for name, found in zip(names, hits, strict=True)]}

    async def context(self, view: View) -> Json:
        """Assemble a prompt, and show what its tokens went to."""
        budget = _number(view, "budget", DEFAULT_BUDGET_TOKENS)
        fields = {**_question(view), "mode": view.mode, "budget_tokens": budget}
        if conversation := view.query.get("conversation_id"):
            fields["conversation_id"] = conversation
        context = await self._service.operations.run(ASSEMBLE_CONTEXT, view.call(), view.selector, fields)
        sent = {name: value for name, value in fields.items() if value is not None}
        left_out = await asyncio.gather(*(self._text(view, one) for one in context["dropped"][:MAX_DROPPED]))
        packed = PackedContext(context, budget)
        return {"answer": context, "packed": packed, "left_out": left_out, "sent": _body(view, sent), "budget": budget}

    async def _text(self, view: View, memory_id: str) -> Json:
        try:
            return await self._service.memories.get(view.call(), view.selector, memory_id)
        except Refused:
            return {"memory_id": memory_id, "text": "This memory is gone meanwhile.", "mode": None}


def _cut(hit: Json) -> Json:
    """Return a hit; that of a long text with its best passage marked, in an excerpt and in the whole."""
    if not (passages := hit.get("passages")):
        return hit
    whole = pieces_of(hit["text"], [(passages[0]["start"], passages[0]["end"])])
    return {**hit, "excerpt": excerpt(whole, AROUND_PASSAGE_CHARS), "whole": whole}


def _explained(contributions: Mapping[str, float]) -> Json:
    """Return bars, and in words what mattered: the grounds that speak most for and most against a hit."""
    grounds = [(name, value) for name, value in contributions.items() if name != BEGINNING and abs(value) >= MATTERS]
    return {
        "bars": signed_bars(contributions),
        "for_it": [name for name, value in grounds if value > 0][:TOLD],
        "against_it": [name for name, value in grounds if value < 0][:TOLD],
    }


def _question(view: View) -> dict[str, Any]:
    named = {name: f"{view.query[name][:10]}T00:00:00Z" for name in ("since", "until") if view.query.get(name)}
    return {"query": view.query["q"].strip(), **named}


def _number(view: View, name: str, default: int) -> int:
    given = view.query.get(name) or str(default)
    if not given.isdecimal() or len(given) > 9:
        raise Refused("invalid_value", "give a whole number", name)
    return int(given)


def _body(view: View, fields: Json) -> str:
    """Return the request's body for a client that asks the same over HTTP."""
    return json.dumps({**view.selector, **fields}, ensure_ascii=False, indent=1)
