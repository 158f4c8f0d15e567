"""CloudEvents 1.0 attributes of the worker's records, as headers of Kafka's binary content mode.

Source: the specification's Kafka protocol binding, `ce_` headers and `content-type`.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid5

import orjson

from schemas.messages.records import Outgoing
from streams.topics import Topics

NAMESPACE = UUID("3f0b7a52-6d0e-5c0e-9d0a-0d3d5a3c7b11")
"""Of the ids: a record that is written again with the same bytes has the same id, so consumers can drop it."""


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """Adds the attributes to records of some topics."""

    source: str
    """A URI reference that names the deployment."""

    topics: frozenset[str]

    def describe(self, out: Outgoing, at: datetime) -> Outgoing:
        """Return the record with attributes; `at` is the time of writing. Records of other topics stay as they are."""
        if out.topic not in self.topics:
            return out
        schema = "tombstone.v1" if out.value is None else orjson.loads(out.value)["schema"]
        key, value = out.key or b"", out.value or b""
        attributes = {
            "ce_specversion": "1.0",
            "ce_id": str(uuid5(NAMESPACE, f"{out.topic}\0{key.hex()}\0{value.hex()}")),
            "ce_source": self.source,
            "ce_type": f"modestream.{schema}",
            "ce_time": at.isoformat(),
            "content-type": "application/json",
        }
        added = tuple((name, text.encode()) for name, text in attributes.items())
        return replace(out, headers=(*out.headers, *added))


def described_topics(topics: Topics) -> frozenset[str]:
    """Return the topics whose records are events; replies and dead letters are others' records or answers to them."""
    return topics.internal_events() | {topics.boundaries, topics.runs, topics.contexts, topics.receipts}
