"""What every page is made with: the service, the view of a request, and templates."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway.pages.header import header_of, projects_of
from gateway.pages.rendering import Renderer
from gateway.pages.view import View, view_of
from gateway.service.access import DEFAULT_PROJECT
from gateway.service.service import MemoryService


class Pages:
    """Builds views and renders pages. `service` is the one of all doors, so that its checks hold here."""

    def __init__(
        self, service: MemoryService, renderer: Renderer, scope_fields: frozenset[str], *, is_signed_in: bool
    ) -> None:
        self.service = service
        self._renderer = renderer
        self._scope_fields = scope_fields
        self._is_signed_in = is_signed_in

    def view(self, request: Request) -> View:
        """Return the view of a request. Raises Refused."""
        return view_of(request, self.service, self._scope_fields)

    def place_of(self, scope: Mapping[str, str]) -> dict[str, str]:
        """Return a scope without its user, which every call names itself."""
        return self.service.boundary_fields.others(scope)

    async def in_one_project(self, view: View) -> View:
        """Return the view of a page about one project: the chosen one, else `default`, else the user's first."""
        if view.project is not None:
            return view
        names = await projects_of(self.service, view, view.call())
        first = DEFAULT_PROJECT if DEFAULT_PROJECT in names else min(names, default=DEFAULT_PROJECT)
        return replace(view, project=first, projects=names)

    async def render(self, view: View, template: str, title: str, active: str, **values: Any) -> HTMLResponse:
        """Return a page. Raises Refused."""
        header = await header_of(self.service, view, title, active)
        return self._renderer.page(template, view, header, is_signed_in=self._is_signed_in, **values)

    def part(self, view: View, template: str, **values: Any) -> HTMLResponse:
        """Return a part that replaces an older one in its page."""
        return self._renderer.part(template, view, **values)

    def text(self, view: View, template: str, **values: Any) -> str:
        """Return the text of a part, for events of a stream."""
        return self._renderer.text(template, {"view": view, **values})

    def bare(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page without a view, such as the one to sign in."""
        return HTMLResponse(self._renderer.text(template, values), status)


def see(address: str) -> Response:
    """Lead to the page that shows what an action did."""
    return RedirectResponse(address, 303)
