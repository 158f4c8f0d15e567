"""From a request to a call: caller, user, deadline, request id. Names in paths are percent-encoded once."""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator

from gateway.http.preferences import is_async, wait_of
from gateway.http.problems import request_id_of
from gateway.service.calls import Call, Caller


def decoded(name: str) -> str:
    """Decode a name of a path. Raises ValueError if it is not UTF-8."""
    return unquote(name, errors="strict")


PathName = Annotated[str, Path(description="Percent-encoded once, `/` as `%2F`."), AfterValidator(decoded)]

Preference = Annotated[
    str | None,
    Header(
        alias="Prefer",
        description="`wait=SECONDS` (0.1 to 60, default 10): the time that the answer may take. `respond-async`: answer "
        "a job at once with 202.",
        examples=["wait=5"],
    ),
]


def caller_of(request: Request) -> Caller:
    """Return the caller that the key stands for."""
    caller = request.scope.get("caller")
    assert isinstance(caller, Caller)
    return caller


def call_of(request: Request, user_id: PathName, prefer: Preference = None) -> Call:
    """Return the call of a request about a user."""
    return Call.within(caller_of(request), user_id, wait_of(prefer), request_id_of(request))


UserCall = Annotated[Call, Depends(call_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]


def wants_async(prefer: Preference = None) -> bool:
    """True if the caller asks to be answered before the work is done."""
    return is_async(prefer)


AnswerLater = Annotated[bool, Depends(wants_async)]
