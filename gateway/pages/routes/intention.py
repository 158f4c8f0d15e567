"""The intention of a user in a project: what is open, where it was said, what was resolved, what is set."""

from collections.abc import Sequence

from modestream_client.operations import GET_INTENTION, SET_INTENTION
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import Form, read_form
from gateway.pages.pages import Pages, see
from gateway.pages.view import PAGES

LISTS = (
    ("goals", "Goals"),
    ("blocking_errors", "Errors in the way"),
    ("constraints", "Constraints"),
    ("decisions", "Decisions"),
)
"""The lists of an intention, in the order of a page."""

SETTABLE = ("goals", "constraints")


def intention_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    operations, path = pages.service.operations, f"{PAGES}/intention"

    async def show(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        intention = await operations.run(GET_INTENTION, view.call(), view.place)
        given = {name: [one["text"] for one in intention[name] if one["source"] == "set"] for name in SETTABLE}
        return await pages.render(
            view, "intention.html", "Intention", "intention", intention=intention, given=given, lists=LISTS
        )

    async def change(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        lists = {name: _lines(form, name) for name in SETTABLE}
        await operations.run(SET_INTENTION, view.call(), view.place, lists)
        return see(view.address("intention", notice="saved", name="the intention"))

    return [Route(path, show, methods=["GET"]), Route(path, change, methods=["POST"])]


def _lines(form: Form, name: str) -> list[str]:
    text = form.optional(name) or ""
    return [line.strip() for line in text.splitlines() if line.strip()]
