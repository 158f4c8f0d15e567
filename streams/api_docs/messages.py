"""The messages of an AsyncAPI document: what a record on a channel has as value, key and headers."""

from collections.abc import Iterable
from typing import Any

from streams.api_docs.channels import BINDING_VERSION, DEAD_LETTER
from streams.api_docs.payloads import component_name, reply_name

JSON_TYPE = "application/json"

Json = dict[str, Any]

BOUNDARY_KEY = (
    "The user_id of the scope, with % and / percent-encoded. The partition is murmur2 of it, as in Kafka's Java client."
)
"""What a producer writes as key (CONTRACT §1)."""


def build_message_components(kinds: Iterable[str]) -> Json:
    """Requests of these kinds, the reply to each, and dead letters."""
    found: Json = {DEAD_LETTER: _dead_letter()}
    for kind in kinds:
        found[kind] = _message(kind, "request-headers", BOUNDARY_KEY)
        found[reply_name(kind)] = _message(reply_name(kind), "reply-headers", "The key of the request, as it was sent.")
    return found


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
        "summary": "What could not be processed, with its key, its value and its headers as they came.",
        "contentType": "application/octet-stream",
        "headers": _schema("dead-letter-headers"),
        "payload": {"description": "Any bytes, or none."},
        "bindings": _keyed("The key of the record, as it was sent."),
    }


def _schema(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _keyed(description: str) -> Json:
    return {"kafka": {"key": {"type": "string", "description": description}, "bindingVersion": BINDING_VERSION}}
