"""Bodies of forms in, fields out. Guaranteed: bounded; what is no form is refused."""

from urllib.parse import parse_qs

from starlette.requests import Request

from gateway.service.failures import Refused

MEDIA_TYPE = "application/x-www-form-urlencoded"

MAX_FIELDS = 1_000
"""Fields of a form: the longest has a page of selected memories."""


class Form:
    """The fields of a form; a field may have several values."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """Return a field that must be there. Raises Refused, `invalid_value`."""
        value = self.optional(name)
        if value is None:
            raise Refused("invalid_value", f"{name.replace('_', ' ')} is empty", name)
        return value

    def optional(self, name: str) -> str | None:
        """Return a field; None where it is empty."""
        return (self._fields.get(name) or [""])[-1].strip() or None

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return self._fields.get(name, [])

    def is_set(self, name: str) -> bool:
        """True for a box that is ticked."""
        return self.optional(name) is not None


async def read_form(request: Request) -> Form:
    """Read the form of a request. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != MEDIA_TYPE:
        raise Refused("invalid_value", "send this as a form")
    try:
        body = (await request.body()).decode()
        return Form(parse_qs(body, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        raise Refused("invalid_value", "the form can't be read") from None
