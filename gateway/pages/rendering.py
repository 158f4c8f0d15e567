"""Templates in, HTML out; and the static files that pages load.

Guaranteed: text of memories is escaped wherever it is shown; a name that a template misspells raises. The address of a
static file has a digest of all of them, so that browsers may cache it for ever. Vendored files are listed in
`static/vendor/vendored.json` with version, licence and SHA-256; a test compares them.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from gateway.pages.formats import FILTERS
from gateway.pages.requests import PAGES

TEMPLATES = Path(__file__).with_name("templates")

STATIC = Path(__file__).with_name("static")

DIGEST_CHARS = 12
"""Characters of a digest in a name: enough to tell versions of one file apart."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


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

    def text(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the text of a template."""
        return self._environment.get_template(template).render(**values)


def asset(name: str) -> str:
    """Return the address of a file of `static`. Raises KeyError for an unknown name."""
    return f"{PAGES}/static/{_digests()[name]}/{name}"


async def serve_asset(request: Request) -> Response:
    """Serve a static file."""
    name = request.path_params["name"]
    if name not in _digests():
        raise HTTPException(404)
    is_current = request.path_params["digest"] == _digests()[name]
    caching = "public, max-age=31536000, immutable" if is_current else "no-cache"
    return FileResponse(
        STATIC / name, media_type=MEDIA_TYPES.get(Path(name).suffix), headers={"Cache-Control": caching}
    )


@cache
def _digests() -> Mapping[str, str]:
    """Return the digest for each name."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    # One digest of all files: modules import each other by relative names, which keep the importer's digest.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:DIGEST_CHARS]
    return {path.relative_to(STATIC).as_posix(): digest for path in files}
