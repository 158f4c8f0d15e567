"""Categories of a project: the list, one with its items, and what changes them."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gateway.pages.forms import read_form
from gateway.pages.pages import Pages, see
from gateway.pages.path_names import name_of
from gateway.pages.view import PAGES


def category_pages(pages: Pages) -> Sequence[BaseRoute]:
    """Return the routes."""
    layers = pages.service.layers
    path, one_path = f"{PAGES}/categories", f"{PAGES}/categories/one/{{name}}"

    async def show(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        listed = await layers.list_categories(view.call(), view.place, {"include_summary": True})
        return await pages.render(view, "categories.html", "Categories", "categories", listed=listed)

    async def show_one(request: Request) -> Response:
        view = await pages.in_one_project(pages.view(request))
        category = await layers.get_category(view.call(), view.place, name_of(request, "name"))
        return await pages.render(view, "category.html", category["name"], "categories", category=category)

    async def declare(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("name")
        fields = {"description": form.optional("description") or ""}
        await layers.declare_category(view.call(), view.place, name, fields)
        return see(view.address("categories", "one", name, notice="saved", name=name))

    async def rename(request: Request) -> Response:
        view, form = await pages.in_one_project(pages.view(request)), await read_form(request)
        name = form.text("new_name")
        await layers.rename_category(view.call(), view.place, name_of(request, "name"), name)
        return see(view.address("categories", "one", name, notice="renamed", name=name))

    async def delete(request: Request) -> Response:
        view, name = await pages.in_one_project(pages.view(request)), name_of(request, "name")
        await layers.delete_category(view.call(), view.place, name)
        return see(view.address("categories", notice="deleted", name=name))

    return [
        Route(path, show, methods=["GET"]),
        Route(path, declare, methods=["POST"]),
        Route(one_path, show_one, methods=["GET"]),
        Route(f"{one_path}/rename", rename, methods=["POST"]),
        Route(f"{one_path}/delete", delete, methods=["POST"]),
    ]
