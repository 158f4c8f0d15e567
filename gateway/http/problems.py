"""RFC 9457: every error over HTTP is `application/problem+json` with a code of the contract."""

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

from gateway.http.paths import is_stream
from gateway.service.calls import Refused, failed
from schemas.failures import Rejected

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
"""A path that lacks a name, such as that of the user `""`."""

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
    """Return the answer of a refused call; `http_status` overrides that of its code."""
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
    """Return the refusal of a value that the models of the contract reject."""
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
    """Return the id of a request, for logs and answers."""
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
