"""Categories of a project: the list, one with its items, and what changes them."""

from collections.abc import Sequence

from modestream_client import operations as rows
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import read_form
from gateway.pages.pages import Pages, see
from gateway.pages.path_names import name_of
from gateway.pages.view import PAGES


def category_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    operations = pages.service.operations
    path, one_path = f"{PAGES}/categories", f"{PAGES}/categories/one/{{name}}"

    async def show(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        listed = await operations.run(rows.LIST_CATEGORIES, view.call(), view.place, {"include_summary": True})
        return await pages.render(view, "categories.html", "Categories", "categories", listed=listed)

    async def show_one(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        category = await operations.run(rows.GET_CATEGORY, view.call(), view.place, {"name": name_of(request, "name")})
        return await pages.render(view, "category.html", category["name"], "categories", category=category)

    async def declare(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("name")
        fields = {"name": name, "description": form.optional("description") or ""}
        await operations.run(rows.DECLARE_CATEGORY, view.call(), view.place, fields)
        return see(view.address("categories", "one", name, notice="saved", name=name))

    async def rename(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("new_name")
        fields = {"name": name_of(request, "name"), "new_name": name}
        await operations.run(rows.RENAME_CATEGORY, view.call(), view.place, fields)
        return see(view.address("categories", "one", name, notice="renamed", name=name))

    async def delete(request: Request) -> Response:
        view, name = await pages.in_one_project(pages.view(request)), name_of(request, "name")
        await operations.run(rows.DELETE_CATEGORY, view.call(), view.place, {"name": name})
        return see(view.address("categories", notice="deleted", name=name))

    return [
        Route(path, show, methods=["GET"]),
        Route(path, declare, methods=["POST"]),
        Route(one_path, show_one, methods=["GET"]),
        Route(f"{one_path}/rename", rename, methods=["POST"]),
        Route(f"{one_path}/delete", delete, methods=["POST"]),
    ]
