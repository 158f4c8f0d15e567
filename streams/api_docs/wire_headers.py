"""JSON Schemas of record headers. Kafka's headers are bytes: text is UTF-8, numbers are ASCII decimals."""

import re
from typing import Any

from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.messages.records import REQUEST_ID_HEADER
from streams.flow.runs.recorder import RUN_HEADER
from streams.observability.tracing import TRACEPARENT
from streams.wire.reply_address import DIALECTS, MAX_TOPIC_CHARS, Dialect

Json = dict[str, Any]

DEAD_LETTER_HEADERS: Json = {
    "dead_letter_topic": {"type": "string", "description": "The topic of the record."},
    "dead_letter_partition": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_offset": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_code": {"type": "string", "description": "An error code as in replies, or `poison`."},
    "dead_letter_reason": {"type": "string"},
    "dead_letter_time": {"type": "string", "format": "date-time"},
}
"""The headers that a dead letter adds."""


def request_headers(replies: str) -> Json:
    """Build the headers of a request, all optional, in each dialect; `replies` is the shared reply topic."""
    headers: Json = {
        "deadline": {
            "type": "string",
            "pattern": "^[0-9]{1,20}$",
            "description": "Time at which the caller stops waiting, in milliseconds since the epoch.",
        },
        TRACEPARENT: {"type": "string", "description": "The trace of the request, by W3C; an invalid one is ignored."},
        REQUEST_ID_HEADER: {
            "type": "string",
            "description": "An id for the worker's log lines; an invalid one is ignored.",
        },
        RUN_HEADER: {"type": "string", "description": "`1`: record the run of this request."},
        PRINCIPAL_HEADER: {"type": "string", "description": "The caller, for a deployment with an authorization file."},
    }
    for dialect in DIALECTS:
        headers |= _dialect_headers(dialect, replies)
    return {"type": "object", "properties": headers}


def reply_headers() -> Json:
    """Build the headers of a reply: the correlation id under the name in the request."""
    names = [dialect.correlation for dialect in DIALECTS]
    return {"type": "object", "properties": dict.fromkeys(names, _CORRELATION), "maxProperties": 1}


def dead_letter_headers() -> Json:
    """Build the headers that a dead letter adds to those of the record."""
    return {"type": "object", "properties": DEAD_LETTER_HEADERS, "required": sorted(DEAD_LETTER_HEADERS)}


_CORRELATION: Json = {"type": "string", "description": "Any bytes; returned unchanged under the same name."}


def _dialect_headers(dialect: Dialect, replies: str) -> Json:
    topic = {
        "type": "string",
        "maxLength": MAX_TOPIC_CHARS,
        "pattern": "^" + re.escape(replies).replace(r"\-", "-") + r"(\.[A-Za-z0-9._-]+)?$",
        "description": f"The topic of the reply: {replies}, or {replies}.<name>.",
    }
    decimal = {"type": "string", "pattern": "^[0-9]{1,20}$", "description": "The partition of the reply."}
    bytes_ = {"type": "string", "description": "The partition of the reply, four bytes, big-endian."}
    partition = decimal if dialect.partition_encoding == "decimal" else bytes_
    return {dialect.topic: topic, dialect.correlation: _CORRELATION, dialect.partition: partition}
