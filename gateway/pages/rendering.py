"""Templates in, HTML out: escaped, with the headers of a page and what every template may use.

Guaranteed: text of memories is escaped wherever it is shown; a name that a template misspells raises.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from gateway.pages.assets import asset
from gateway.pages.formats import FILTERS
from gateway.pages.header import Header
from gateway.pages.view import View

TEMPLATES = Path(__file__).with_name("templates")


class Renderer:
    """Renders templates by name."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals["asset"] = asset
        self._environment.filters.update(FILTERS)

    def page(self, template: str, view: View, header: Header, **values: Any) -> HTMLResponse:
        """Return a whole page."""
        return HTMLResponse(self.text(template, {"view": view, "header": header, **values}))

    def part(self, template: str, view: View, **values: Any) -> HTMLResponse:
        """Return a part of a page, which replaces an older one there."""
        return HTMLResponse(self.text(template, {"view": view, **values}))

    def text(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the text of a template."""
        return self._environment.get_template(template).render(**values)
