"""Records of the wire contract as requests to the gateway. Pure.

Enters: a record with `schema` and `scope`. Leaves: method, path, query and body. What is None is left out: for the
gateway, as on the wire, that is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.operations import COMMAND, USER, operation_of
from modestream_client.transport import Json


@dataclass(frozen=True, slots=True)
class Route:
    """A request to the gateway. `runs_long`: it can be answered later, at another address."""

    method: str
    path: str
    query: Json = field(default_factory=dict)
    body: Json | None = None
    runs_long: bool = False


def route_of(record: Json, boundary: BoundaryFields = USER_BOUNDARY) -> Route:
    """Return the request of a record. Raises ValueError for a record that the gateway has no route for.

    `boundary` are the fields of its scope that name the user.
    """
    operation, scope = operation_of(record), boundary.others(record["scope"])
    is_command = record["schema"] == COMMAND
    if operation is not None and operation.name == "forget":
        return _forget(boundary.name(record["scope"]), scope, _given(record["arguments"]))
    if operation is None or operation.http is None or operation.permission == "operate":
        name = f"the command {record['command']}" if is_command else record["schema"]
        raise ValueError(f"the gateway has no route for {name}")
    left_out = {"schema", "scope", *operation.fixed, *operation.http.names}
    sent = record["arguments"] if is_command else record
    fields = {**scope, **_given({name: sent[name] for name in sent if name not in left_out}, operation.arguments)}
    named = {name: encode_segment(str(sent[name])) for name in operation.http.names}
    path = operation.http.path.format(user_id=encode_segment(boundary.name(record["scope"])), **named)
    if operation.http.method in ("GET", "DELETE"):
        return Route(operation.http.method, path, query=fields, runs_long=operation.runs_long)
    return Route(operation.http.method, path, body=fields, runs_long=operation.runs_long)


def encode_segment(name: str) -> str:
    """Percent-encode a name for one segment of a path, dots too where they would be a step in the path.

    >>> encode_segment("a/b c"), encode_segment("..")
    ('a%2Fb%20c', '%2E%2E')
    """
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _forget(user_id: str, scope: Json, arguments: Json) -> Route:
    user = USER.format(user_id=encode_segment(user_id))
    if arguments.get("user"):
        return Route("DELETE", user, query={"confirm": user_id})
    if arguments.get("project"):
        project = scope.pop("project_id")
        return Route("DELETE", f"{user}/projects/{encode_segment(project)}", query={**scope, "confirm": project})
    if "memory_id" in arguments:
        return Route("DELETE", f"{user}/memories/{encode_segment(arguments['memory_id'])}", query=scope)
    conversation = arguments["conversation_id"]
    path = f"{user}/conversations/{encode_segment(conversation)}"
    return Route("DELETE", path, query={**scope, "confirm": conversation})


def _given(values: Mapping[str, Any], arguments: type[BaseModel] | None = None) -> Json:
    """Drop nulls, but for arguments that must be given: there null is a value."""
    needed = {name for name, one in arguments.model_fields.items() if one.is_required()} if arguments else ()
    return {name: value for name, value in values.items() if value is not None or name in needed}
