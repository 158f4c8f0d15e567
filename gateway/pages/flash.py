"""What the next page says about an action: kept in this process, under a token in a cookie, and shown once.

An address carries none of it: no link can show a notice, and a reload does not repeat one. With several gateways behind
one address, a notice is lost where another one answers; the action is not.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from gateway.service.calls import Refused

COOKIE = "ms-notice"

MAX_KEPT = 500
"""Notices in memory, the newest."""

MAX_AGE_S = 900.0
"""Time to live of a notice, and of the undo that it offers."""

Undo = Callable[[Any], Awaitable[Response]]
"""Takes the view of the request that undoes."""


@dataclass(frozen=True)
class RefusedForm:
    """A form that was refused: where it was sent, its fields, and why."""

    action: str
    fields: Mapping[str, Sequence[str]]
    refused: Refused


@dataclass(frozen=True)
class Flash:
    """A notice. `undo` takes the action back; `form` is what was refused; `secret` is shown this once."""

    notice: str | None = None
    undo: Undo | None = None
    form: RefusedForm | None = None
    secret: str | None = None
    token: str = ""


class Flashes:
    """Notices by token."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Flash]] = OrderedDict()

    def keep(self, answer: Response, flash: Flash) -> Response:
        """Keep a notice for the page that an answer leads to."""
        token = secrets.token_urlsafe(16)
        self._kept[token] = (time.monotonic() + MAX_AGE_S, flash)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        answer.set_cookie(COOKIE, token, max_age=60, httponly=True, samesite="strict", path="/admin")
        return answer

    def find(self, token: str) -> Flash | None:
        """Return a notice that has not expired."""
        until, flash = self._kept.get(token, (0.0, None))
        return flash if until > time.monotonic() else None

    def drop(self, token: str) -> None:
        """Forget a notice: its action was undone."""
        self._kept.pop(token, None)
