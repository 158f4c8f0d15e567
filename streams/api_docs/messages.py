"""The messages of the AsyncAPI document: value, key and headers of records."""

from collections.abc import Iterable
from typing import Any

from modestream_client.boundary import BoundaryFields

from streams.api_docs.channels import BINDING_VERSION, BOUNDARY, DEAD_LETTER, RUN
from streams.api_docs.payloads import component_name, reply_name

JSON_TYPE = "application/json"

Json = dict[str, Any]


def build_message_components(kinds: Iterable[str], boundary: BoundaryFields) -> Json:
    """Build the messages of these kinds of requests, of the reply to each, and of what the worker tells besides.

    `boundary` are the boundary fields of the deployment's scopes.
    """
    key = _boundary_key(boundary)
    messages: Json = {DEAD_LETTER: _dead_letter(), BOUNDARY: _boundary(key), RUN: _run(key)}
    for kind in kinds:
        messages[kind] = _message(kind, "request-headers", key)
        messages[reply_name(kind)] = _message(reply_name(kind), "reply-headers", "The key of the request, unchanged.")
    return messages


def _message(name: str, headers: str, key: str) -> Json:
    return {
        "name": name,
        "contentType": JSON_TYPE,
        "headers": _schema(headers),
        "payload": _schema(component_name(name)),
        "correlationId": {"$ref": "#/components/correlationIds/correlation_id"},
        "bindings": _keyed(key),
    }


def _dead_letter() -> Json:
    return {
        "name": DEAD_LETTER,
        "summary": "A record that could not be processed, with its key, value and headers unchanged.",
        "contentType": "application/octet-stream",
        "headers": _schema("dead-letter-headers"),
        "payload": {"description": "Any bytes, or none."},
        "bindings": _keyed("The key of the record, unchanged."),
    }


def _boundary_key(boundary: BoundaryFields) -> str:
    joined = "" if len(boundary) == 1 else ", joined by /"
    fields = " and ".join(boundary)
    return (
        f"The {fields} of the scope, with % and / percent-encoded{joined}. "
        "The partition is murmur2 of it, as in Kafka's Java client."
    )


def _boundary(key: str) -> Json:
    return {
        "name": BOUNDARY,
        "summary": "What there is of a user: the last record of a key counts. A tombstone tells that it is forgotten.",
        "contentType": JSON_TYPE,
        "payload": _schema(component_name(BOUNDARY)),
        "bindings": _keyed(key),
    }


def _run(key: str) -> Json:
    return {
        "name": RUN,
        "summary": "How a request went. Without a key it is of no user. A tombstone tells that the user is forgotten.",
        "contentType": JSON_TYPE,
        "payload": _schema(component_name(RUN)),
        "bindings": _keyed(key),
    }


def _schema(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _keyed(description: str) -> Json:
    return {"kafka": {"key": {"type": "string", "description": description}, "bindingVersion": BINDING_VERSION}}
