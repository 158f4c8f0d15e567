"""JSON answers, by Pydantic's encoder: senders' metadata may have integers beyond 64 bits, which orjson refuses."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


class JSONAnswer(Response):
    """An answer with this content as JSON; a number that JSON has no word for is null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return to_json(content, inf_nan_mode="null")
