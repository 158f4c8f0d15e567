"""What a context or an answer was based on: its memories by section, and the turns that they come from."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from modestream_client.operations import GET_CONTEXT
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.formats import speaker_of
from gateway.pages.pages import Pages
from gateway.pages.relations import get_all
from gateway.pages.requests import PAGES, name_of
from gateway.pages.routes.ask import TITLES
from gateway.service.access import PROJECT, readable_project
from gateway.service.calls import Refused

SHOWN_TURNS = 5
"""Turns of one memory that are linked: a summary has up to thousands."""


def context_pages(pages: Pages) -> Sequence[BaseRoute]:
    async def show(request: Request) -> Response:
        view, context_id = pages.view(request), name_of(request, "context_id")
        scope = {PROJECT: view.project or readable_project(view.caller, view.user or "")}
        try:
            context = await pages.service.operations.run(GET_CONTEXT, view.call(), scope, {"context_id": context_id})
        except Refused as refused:
            if refused.code != "not_found":
                raise
            return await pages.render(view, "context.html", "Basis", "ask", context=None, context_id=context_id)
        references = context["references"]
        records = await get_all(pages.service, view.call(), [({}, each["memory_id"]) for each in references])
        rows = [
            {**reference, "memory": record, "turns": reference.get("turns", [])}
            for reference, record in zip(references, records, strict=True)
        ]
        return await pages.render(
            view,
            "context.html",
            "Basis",
            "ask",
            context=context,
            context_id=context_id,
            sections=[(TITLES.get(name, name), list(of)) for name, of in groupby(rows, itemgetter("section"))],
            speaker_of=speaker_of,
            shown_turns=SHOWN_TURNS,
        )

    return [Route(f"{PAGES}/contexts/{{context_id}}", show)]
