"""The files that pages load: named with a digest of their content, so that browsers keep them for ever.

Vendored files stand in `static/vendor/vendored.json` with version, licence and SHA-256; a test compares them.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from gateway.pages.view import PAGES

STATIC = Path(__file__).with_name("static")

DIGEST_CHARS = 12
"""Characters of a digest in a name: enough to tell versions of one file apart."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

KEPT_FOREVER = "public, max-age=31536000, immutable"


def asset(name: str) -> str:
    """Return the address of a file of `static`. Raises KeyError for one that is none."""
    return f"{PAGES}/static/{_digests()[name]}/{name}"


async def serve_asset(request: Request) -> Response:
    """Serve a file; relative imports of modules keep the digest of the module that imports."""
    name = request.path_params["name"]
    if name not in _digests():
        raise HTTPException(404)
    is_current = request.path_params["digest"] == _digests()[name]
    kept = KEPT_FOREVER if is_current else "no-cache"
    media_type = MEDIA_TYPES.get(Path(name).suffix)
    return FileResponse(STATIC / name, media_type=media_type, headers={"Cache-Control": kept})


@cache
def _digests() -> Mapping[str, str]:
    """Return the digest of all files together: modules import each other by relative names."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:DIGEST_CHARS]
    return {path.relative_to(STATIC).as_posix(): digest for path in files}
