"""Answers of the gateway as replies, and its problem details as the client's errors. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from modestream_client.answers import Reply, notices_of, unreadable_reply
from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout
from modestream_client.transport import Json

CODES = {401: "unauthenticated", 403: "not_allowed", 404: "not_found", 413: "too_large", 429: "too_many_requests",
         503: "unavailable", 504: "timeout"}  # fmt: skip
"""Codes of statuses without problem details, as a proxy before the gateway answers them; of others it is `internal`."""


def reply_of_answer(content: bytes) -> Reply:
    """Parse a success. Raises `MemoryServiceError` for an unreadable one."""
    try:
        result = dict(json.loads(content))
        return Reply(result, notices_of(result.pop("warnings", None) or ()))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise unreadable_reply(problem) from problem


def failure_of(status: int, content: bytes, record: Json) -> MemoryClientError:
    """Return the error of an answer that is no success, with its field as the wire names it."""
    problem = _problem(content)
    code = str(problem.get("code") or CODES.get(status, "internal"))
    message = str(problem.get("detail") or problem.get("title") or f"the gateway answered {status}")
    if code == "timeout":
        return MemoryTimeout(message)
    return MemoryServiceError(code, message, _wire_field(problem.get("field"), record))


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _wire_field(name: object, record: Json) -> str | None:
    """Return the field's path in the record: the gateway names it without `scope` or `arguments`."""
    if not isinstance(name, str):
        return None
    first = name.partition(".")[0]
    for part in ("arguments", "scope"):
        if first in (record.get(part) or ()):
            return f"{part}.{name}"
    return name
