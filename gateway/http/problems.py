"""RFC 9457: every error over HTTP is `application/problem+json` with a code of the contract.

Paths are raw, so that an encoded `/` in a name does not split it; HEAD is answered as GET.
"""

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.service.calls import Refused, failed
from schemas.failures import Rejected

STREAM = re.compile(r"/v1/users/[^/]+/(events|export|files/[^/]+)|/admin/live/events")
"""Paths whose answers stay open, or last as long as their reader takes."""


def is_stream(path: str) -> bool:
    """True for a path whose response is endless or ended by its reader.

    >>> is_stream("/v1/users/u1/events"), is_stream("/v1/users/u1/memories/events")
    (True, False)
    >>> is_stream("/admin/live/events")
    True
    """
    return STREAM.fullmatch(path) is not None


class RawPaths:
    """ASGI middleware: replaces the decoded path by the raw one; names are decoded where they are used."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (raw := scope.get("raw_path")) is not None:
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await self._app(scope, receive, send)


class Heads:
    """Passes a HEAD on as a GET, and drops the bytes of its answer; its header fields stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or is_stream(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_without_body)


log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUS_OF: Mapping[str, int] = {
    "invalid_json": 400,
    "unknown_schema": 400,
    "unauthenticated": 401,
    "not_allowed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "too_large": 413,
    "misdirected": 421,
    "invalid_value": 422,
    "unknown_mode": 422,
    "unknown_scope_field": 422,
    "selector_refused": 422,
    "too_many_requests": 429,
    "internal": 502,
    "unavailable": 503,
    "timeout": 504,
}
"""The HTTP status of each code (docs/contract.md)."""

TITLES: Mapping[str, str] = {
    "invalid_json": "The body is not a JSON object",
    "unknown_schema": "The schema is not known",
    "unauthenticated": "A valid key is needed",
    "not_allowed": "Not allowed",
    "not_found": "Not found",
    "method_not_allowed": "The method is not allowed here",
    "conflict": "Conflict",
    "too_large": "Too large",
    "misdirected": "This host is not served here",
    "invalid_value": "A value is invalid",
    "unknown_mode": "The mode is not declared",
    "unknown_scope_field": "The scope has no such field",
    "selector_refused": "The selection is refused",
    "too_many_requests": "Too many requests",
    "internal": "The memory service failed",
    "unavailable": "The memory service is unavailable",
    "timeout": "No answer in time",
}
"""One title for each code: it does not change from occurrence to occurrence."""

CODES_OF_HTTP: Mapping[int, str] = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 400: "invalid_json"}
"""Codes of the statuses that the framework itself raises."""

EMPTY_NAME = re.compile(r"^/v1/(.*//|users/$)")
"""A path with an empty name, such as the user `""`."""

SENTENCES_OF_HTTP: Mapping[int, str] = {
    404: "there is nothing at this path",
    405: "this path has other methods; see /openapi.json",
    413: "the body is larger than this gateway takes",
}


def problem_body(refused: Refused, request_id: str, http_status: int | None = None) -> dict[str, Any]:
    """Return the problem of a refused call; `http_status` overrides that of its code."""
    status = http_status or (404 if refused.names_resource else STATUS_OF[refused.code])
    return {
        "type": f"urn:modestream:error:{refused.code}",
        "title": TITLES[refused.code],
        "status": status,
        "detail": refused.message,
        "code": refused.code,
        "field": refused.field,
        "request_id": request_id,
    }


def problem(refused: Refused, request_id: str, http_status: int | None = None) -> JSONResponse:
    body = problem_body(refused, request_id, http_status)
    status = body["status"]
    # The middleware that adds the id to all other answers is inside: a defect is answered outside of it.
    headers = {"Cache-Control": "no-store", "X-Request-Id": request_id}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(refused.retry_after_s)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


def refused_of(error: Rejected) -> Refused:
    return Refused(error.code, error.message, error.field or None)


def handle_problems(app: FastAPI) -> None:
    """Answer every error of the app as a problem, the framework's own included."""

    async def on_refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refused)
        return problem(error, request_id_of(request))

    async def on_rejected(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Rejected)
        return problem(refused_of(error), request_id_of(request))

    async def on_invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        return problem(Refused("invalid_value", str(first["msg"]), field or None), request_id_of(request))

    async def on_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        status, path = error.status_code, request.scope["path"]
        code: Any = CODES_OF_HTTP.get(status, "invalid_value")
        sentence = SENTENCES_OF_HTTP.get(status, "the request is not valid HTTP for this path")
        if status == HTTPStatus.NOT_FOUND and EMPTY_NAME.search(path):
            sentence = "there is nothing at this path: a name in it is empty"
        answer = problem(Refused(code, sentence), request_id_of(request))
        answer.headers.update(error.headers or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _methods_at(request)):
            answer.headers["Allow"] = ", ".join(methods)
        return answer

    async def on_defect(request: Request, error: Exception) -> JSONResponse:
        log.error("request %s failed", request_id_of(request), exc_info=error)
        return problem(failed(), request_id_of(request))

    app.add_exception_handler(Refused, on_refused)
    app.add_exception_handler(Rejected, on_rejected)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_defect)


def request_id_of(request: Request) -> str:
    return str(request.scope.get("request_id", "-"))


def _methods_at(request: Request) -> list[str]:
    """Return the methods of all routes at the path: the framework names only those of the first."""
    path = request.scope["path"]
    methods: set[str] = set()
    for route in iter_route_contexts(request.app.routes):
        if route.path_regex and route.path_regex.match(path):
            methods |= set(route.methods or ())
    if "GET" in methods and not is_stream(path):
        methods.add("HEAD")
    return sorted(methods)
