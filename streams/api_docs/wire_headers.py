"""The headers of records, as JSON Schemas. Kafka's headers are bytes: text is UTF-8, numbers are ASCII decimals."""

import re
from typing import Any

from agents.rules.access.grants import PRINCIPAL_HEADER
from streams.wire.reply_address import DIALECTS, MAX_TOPIC_CHARS, Dialect

Json = dict[str, Any]

DEAD_LETTER_HEADERS: Json = {
    "dead_letter_topic": {"type": "string", "description": "Where the record was."},
    "dead_letter_partition": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_offset": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_code": {"type": "string", "description": "A code of the errors in replies."},
    "dead_letter_reason": {"type": "string"},
    "dead_letter_time": {"type": "string", "format": "date-time"},
}
"""What is added to the headers that a record had."""


def request_headers(replies: str) -> Json:
    """The headers of a request, all optional, in each dialect; `replies` is the topic that all clients share."""
    ours: Json = {
        "deadline": {
            "type": "string",
            "pattern": "^[0-9]{1,20}$",
            "description": "Milliseconds since the epoch, after which nobody waits for the reply.",
        },
        PRINCIPAL_HEADER: {
            "type": "string",
            "description": "Who asks, where the deployment has an authorization file.",
        },
    }
    for dialect in DIALECTS:
        ours |= _dialect_headers(dialect, replies)
    return {"type": "object", "properties": ours}


def reply_headers() -> Json:
    """The headers of a reply: the correlation under the name that it came with."""
    names = [dialect.correlation for dialect in DIALECTS]
    return {"type": "object", "properties": dict.fromkeys(names, _CORRELATION), "maxProperties": 1}


def dead_letter_headers() -> Json:
    """The headers of a dead letter, beside those that the record had."""
    return {"type": "object", "properties": DEAD_LETTER_HEADERS, "required": sorted(DEAD_LETTER_HEADERS)}


_CORRELATION: Json = {"type": "string", "description": "Any bytes. They come back under the same name, byte for byte."}


def _dialect_headers(dialect: Dialect, replies: str) -> Json:
    topic = {
        "type": "string",
        "maxLength": MAX_TOPIC_CHARS,
        "pattern": "^" + re.escape(replies).replace(r"\-", "-") + r"(\.[A-Za-z0-9._-]+)?$",
        "description": f"The topic of the reply: {replies}, or {replies}.<name>.",
    }
    decimal = {"type": "string", "pattern": "^[0-9]{1,20}$", "description": "The partition of the reply."}
    bytes_ = {"type": "string", "description": "The partition of the reply, four bytes, big-endian."}
    partition = decimal if dialect.spelling == "decimal" else bytes_
    return {dialect.topic: topic, dialect.correlation: _CORRELATION, dialect.partition: partition}
