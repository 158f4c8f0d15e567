"""From a request to a call: caller, user, deadline, request id; and from a result to its JSON.

Names in paths are percent-encoded once. Dependencies are coroutines, though they await nothing: the framework runs any
other in a thread, which costs as much as the rest of the route.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator
from pydantic_core import to_json
from starlette.responses import Response

from gateway.http.problems import request_id_of
from gateway.readiness import PROBE_USER_ID
from gateway.service.access import require_operating, require_user
from gateway.service.calls import DEFAULT_WAIT_S, Call, Caller
from schemas.state.policies import Permission

MIN_WAIT_S, MAX_WAIT_S = 0.1, 60.0
"""Seconds that a caller may wait (docs/contract.md)."""

WAIT = re.compile(r"\s*wait\s*=\s*\"?(\d{1,6}(?:\.\d{1,6})?)\"?\s*\Z", re.IGNORECASE)


def wait_of(prefer: str | None) -> float:
    """Return the seconds that an answer may take, within the limits.

    >>> wait_of("respond-async, wait=0.5")
    0.5
    """
    for part in (prefer or "").split(","):
        if wait := WAIT.match(part):
            return min(MAX_WAIT_S, max(MIN_WAIT_S, float(wait[1])))
    return DEFAULT_WAIT_S


def is_async(prefer: str | None) -> bool:
    return any(part.strip().lower() == "respond-async" for part in (prefer or "").split(","))


class JSONAnswer(Response):
    """An answer with this content as JSON; NaN and infinities become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content, inf_nan_mode="null")


def decoded(name: str) -> str:
    """Decode a name of a path. Raises ValueError if it is not UTF-8."""
    return unquote(name, errors="strict")


PathName = Annotated[str, Path(description="Percent-encoded once, `/` as `%2F`."), AfterValidator(decoded)]

Preference = Annotated[
    str | None,
    Header(
        alias="Prefer",
        description="`wait=SECONDS` (0.1 to 60, default 10): the time that the answer may take. "
        "`respond-async`: answer a job at once with 202.",
        examples=["wait=5"],
    ),
]


def caller_of(request: Request) -> Caller:
    caller = request.scope.get("caller")
    assert isinstance(caller, Caller)
    return caller


def _call_for(permission: Permission) -> Callable[..., Awaitable[Call]]:
    """Return a dependency that makes the call of a request about a user, if the caller may do that at all.

    Checked before the body is read, so that a refusal is the same for every body; the service checks the project too.
    """

    async def call_of(request: Request, user_id: PathName, prefer: Preference = None) -> Call:
        caller = caller_of(request)
        if permission == "operate":
            require_operating(caller)
        else:
            require_user(caller, user_id, permission)
        return Call.within(caller, user_id, wait_of(prefer), request_id_of(request))

    return call_of


async def _operating(request: Request, prefer: Preference = None) -> Call:
    """Return a call about the whole deployment, if the caller may operate it."""
    caller = caller_of(request)
    require_operating(caller)
    # Its records go to a user without memories: any user's partition would do.
    return Call.within(caller, PROBE_USER_ID, wait_of(prefer), request_id_of(request))


CALL_FOR: Mapping[Permission, Any] = {
    "read": Depends(_call_for("read")),
    "write": Depends(_call_for("write")),
    "manage": Depends(_call_for("manage")),
    "operate": Depends(_operating),
}

OPERATE_ON_USER: Any = Depends(_call_for("operate"))
"""The dependency of operators' work on one user's memories."""

ReadCall = Annotated[Call, CALL_FOR["read"]]
WriteCall = Annotated[Call, CALL_FOR["write"]]
ManageCall = Annotated[Call, CALL_FOR["manage"]]
OperateCall = Annotated[Call, CALL_FOR["operate"]]


async def _caller_of(request: Request) -> Caller:
    return caller_of(request)


CallerOf = Annotated[Caller, Depends(_caller_of)]
