"""Turn records into HTTP requests, and responses into replies. Pure, except for sending the given requests.

Enters: a record with `schema` and `scope`. Leaves: method, path, query and body; fields that are None are left out,
which means the same to the gateway as on the wire. Problem details become the errors of the client.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from modestream_client.answers import Reply, notices_of, unreadable_reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout
from modestream_client.operations import COMMAND, operation_of
from modestream_client.transport import Json, OnPartial

Ask = Callable[[Json], Awaitable[Reply]]
"""Sends one record as one request."""

COUNTS = {"set_memory_mode": "moved", "set_memory_visibility": "changed"}
"""Commands on several memories, and the count in their result."""

CONCURRENT_CHANGES = 8
"""Concurrent requests: as many as an ordinary pool of connections keeps open."""

CODES = {401: "unauthenticated", 403: "not_allowed", 413: "too_large", 429: "too_many_requests",
         503: "unavailable", 504: "timeout"}  # fmt: skip
"""Codes of statuses without problem details, as answered by a proxy before the gateway; others are `internal`.

So is 404: it says nothing about a memory, and a turn that got it waits in the outbox.
"""


@dataclass(frozen=True, slots=True)
class Route:
    """A request to the gateway. `runs_long`: it can be answered later, at another address."""

    method: str
    path: str
    query: Json = field(default_factory=dict)
    body: Json | None = None
    runs_long: bool = False


def route_of(record: Json, boundary: BoundaryFields = USER_BOUNDARY) -> Route:
    """Return the request of a record. Raises ValueError for one without a route of the gateway.

    `boundary` are the fields of its scope that name the user.
    """
    operation, scope = operation_of(record), boundary.others(record["scope"])
    is_command = record["schema"] == COMMAND
    if operation is None or operation.http is None or operation.permission == "operate":
        name = f"the command {record['command']}" if is_command else record["schema"]
        raise ValueError(f"the gateway has no route for {name}")
    left_out = {"schema", "scope", *operation.fixed, *operation.http.names}
    sent = record["arguments"] if is_command else record
    fields = {**scope, **_given({name: sent[name] for name in sent if name not in left_out}, operation.arguments)}
    named = {name: encode_segment(str(sent[name])) for name in operation.http.names}
    path = operation.http.path.format(user_id=encode_segment(boundary.name(record["scope"])), **named)
    if operation.http.method in ("GET", "DELETE"):
        query = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in fields.items()}
        return Route(operation.http.method, path, query=query, runs_long=operation.runs_long)
    return Route(operation.http.method, path, body=fields, runs_long=operation.runs_long)


def encode_segment(name: str) -> str:
    """Percent-encode a name for one segment of a path, dots too where they would be a step in the path.

    >>> encode_segment("a/b c"), encode_segment("..")
    ('a%2Fb%20c', '%2E%2E')
    """
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _given(values: Mapping[str, Any], arguments: type[BaseModel] | None = None) -> Json:
    """Drop nulls, except for required arguments, where null is a value."""
    needed = {name for name, argument in arguments.model_fields.items() if argument.is_required()} if arguments else ()
    return {name: value for name, value in values.items() if value is not None or name in needed}


def compose(record: Json, ask: Ask) -> Coroutine[Any, Any, Reply] | None:
    """Return a function that performs a record by several requests; None if one request is enough.

    `set_memory_mode` and `set_memory_visibility` of several memories. Not atomic: after an error some are done, and
    repeating the command does the rest.
    """
    arguments = record.get("arguments") or {}
    if record.get("command") in COUNTS and "memory_ids" in arguments:
        return _change_all(record, arguments["memory_ids"], ask)
    return None


async def _change_all(record: Json, memory_ids: list[str], ask: Ask) -> Reply:
    """Change memories, skipping unknown ids. Raises `not_found` if all are unknown."""
    limit = asyncio.Semaphore(CONCURRENT_CHANGES)
    shared = {name: value for name, value in record["arguments"].items() if name != "memory_ids"}

    async def change(memory_id: str) -> MemoryServiceError | None:
        async with limit:
            try:
                await ask({**record, "arguments": {"memory_id": memory_id, **shared}})
            except MemoryServiceError as error:
                if error.code != "not_found":
                    raise
                return error
        return None

    missing = [error for error in await asyncio.gather(*map(change, memory_ids)) if error]
    if missing and len(missing) == len(memory_ids):
        raise missing[0]
    return Reply({COUNTS[record["command"]]: len(memory_ids) - len(missing)})


def reply_of_answer(content: bytes) -> Reply:
    """Parse a success. Raises `MemoryServiceError` for an unreadable one."""
    try:
        result = dict(json.loads(content))
        return Reply(result, notices_of(result.pop("warnings", None) or ()))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise unreadable_reply(problem) from problem


async def read_events(lines: AsyncIterator[str], on_partial: OnPartial, record: Json) -> Reply:
    """Return the reply at the end of server-sent events; `on_partial` gets the pieces before it.

    Raises the error that they end with, and `MemoryServiceError` for a stream without an end.
    """
    event, number = "", 0
    async for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "data" and event == "done":
            return reply_of_answer(value.encode())
        elif name == "data" and event == "error":
            raise failure_of(0, value.encode(), record)
        elif name == "data" and event == "delta":
            try:
                on_partial(number, str(json.loads(value)["text"]))
            except (ValueError, KeyError, TypeError) as problem:
                raise unreadable_reply(problem) from problem
            number += 1
    raise unreadable_reply(EOFError("the answer broke off"))


def failure_of(status: int, content: bytes, record: Json) -> MemoryClientError:
    """Return the error of an unsuccessful answer, with its field as the wire names it."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    problem: Mapping[str, Any] = body if isinstance(body, dict) else {}
    code = str(problem.get("code") or CODES.get(status, "internal"))
    message = str(
        problem.get("detail") or problem.get("title") or f"an answer {status} without a reason: is it the gateway's?"
    )
    if code == "timeout":
        return MemoryTimeout(message)
    return MemoryServiceError(code, message, _wire_field(problem.get("field"), record))


def _wire_field(name: object, record: Json) -> str | None:
    """Return the field's path in the record: the gateway names it without `scope` or `arguments`."""
    if not isinstance(name, str):
        return None
    first = name.partition(".")[0]
    for part in ("arguments", "scope"):
        if first in (record.get(part) or ()):
            return f"{part}.{name}"
    return name
