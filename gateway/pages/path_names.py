"""Names in paths of pages: percent-encoded once."""

from starlette.exceptions import HTTPException
from starlette.requests import Request

from gateway.http.calls import decoded


def name_of(request: Request, parameter: str) -> str:
    """Return a name of the path. Raises HTTPException, 404, for one that is no text."""
    try:
        return decoded(request.path_params[parameter])
    except ValueError:
        raise HTTPException(404) from None
