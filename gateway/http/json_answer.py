"""JSON answers that no model validates."""

from typing import Any

import orjson
from pydantic_core import to_json
from starlette.responses import Response


class JSONAnswer(Response):
    """An answer with this content as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        try:
            return orjson.dumps(content)
        except orjson.JSONEncodeError:
            # A sender's metadata may have integers beyond 64 bits.
            return to_json(content)
