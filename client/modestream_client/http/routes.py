"""Records of the wire contract as requests to the gateway. Pure.

Enters: a record with `schema` and `scope`. Leaves: method, path, query and body. What is None is left out: for the
gateway, as on the wire, that is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any
from urllib.parse import quote

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.transport import Json

ASKED = {"turn.v1": "/turns", "retrieve.v1": "/memories/search", "assemble.v1": "/contexts"}
"""Paths that take a record without `schema` and the user as body."""

COMMANDS = {
    "declare_mode": ("PUT", "/modes/{name}"),
    "rename_mode": ("POST", "/modes/{name}/rename"),
    "delete_mode": ("DELETE", "/modes/{name}"),
    "set_default_mode": ("PUT", "/default-mode"),
    "list_modes": ("GET", "/modes"),
    "suggest_modes": ("GET", "/mode-suggestions"),
    "get_memory": ("GET", "/memories/{memory_id}"),
    "set_memory_mode": ("PATCH", "/memories/{memory_id}"),
    "set_memory_visibility": ("PATCH", "/memories/{memory_id}"),
    "set_interaction_mode": ("PATCH", "/memories/{memory_id}"),
    "declare_category": ("PUT", "/categories/{name}"),
    "list_categories": ("GET", "/categories"),
    "get_category": ("GET", "/categories/{name}"),
    "delete_category": ("DELETE", "/categories/{name}"),
    "get_intention": ("GET", "/intention"),
    "set_intention": ("PUT", "/intention"),
    "health": ("GET", "/health"),
    "list_runs": ("GET", "/runs"),
}
"""Method and path of commands; names in braces are arguments, the others go into the query or the body."""

JOBS = ("backfill", "rebuild", "reconcile", "retry_failed", "compare_embedders", "refresh")
"""Commands that are jobs of the gateway."""

NULLABLE = {"set_default_mode": "name"}
"""Arguments for which null is a value, and not the same as absent."""


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
    schema, scope = record["schema"], boundary.others(record["scope"])
    user_id = boundary.name(record["scope"])
    user = f"/v1/users/{encode_segment(user_id)}"
    fields = _given({name: value for name, value in record.items() if name not in ("schema", "scope")})
    if schema in ASKED:
        return Route("POST", user + ASKED[schema], body={**scope, **fields})
    if schema == "list.v1":
        return Route("GET", f"{user}/{fields.pop('what')}", query={**scope, **fields})
    if schema == "map.v1":
        return Route("GET", f"{user}/map", query={**scope, **fields})
    if schema == "consolidate.v1":
        return Route("POST", f"{user}/consolidations", body={**scope, **fields}, runs_long=True)
    if schema != "command.v1":
        raise ValueError(f"the gateway has no route for {schema}")
    if fields["command"] == "forget":
        return _forget(user_id, user, scope, fields["arguments"])
    return _command(user, scope, fields["command"], fields["arguments"])


def encode_segment(name: str) -> str:
    """Percent-encode a name for one segment of a path, dots too where they would be a step in the path.

    >>> encode_segment("a/b c"), encode_segment("..")
    ('a%2Fb%20c', '%2E%2E')
    """
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _command(user: str, scope: Json, name: str, arguments: Mapping[str, Any]) -> Route:
    if name in JOBS:
        return Route("POST", f"{user}/jobs/{name}", body={**scope, **_given(arguments)}, runs_long=True)
    if name not in COMMANDS:
        raise ValueError(f"the gateway has no route for the command {name}")
    method, path = COMMANDS[name]
    in_path = {place for _, place, _, _ in Formatter().parse(path) if place}
    rest = {key: value for key, value in arguments.items() if key not in in_path}
    fields = {**scope, **_given(rest, keep=NULLABLE.get(name))}
    path = user + path.format(**{place: encode_segment(str(arguments[place])) for place in in_path})
    return Route(method, path, query=fields) if method in ("GET", "DELETE") else Route(method, path, body=fields)


def _forget(user_id: str, user: str, scope: Json, arguments: Mapping[str, Any]) -> Route:
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


def _given(values: Mapping[str, Any], keep: str | None = None) -> Json:
    return {name: value for name, value in values.items() if value is not None or name == keep}
