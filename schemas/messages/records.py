"""Kafka records as read and as to be written, with keys, values and headers as raw bytes."""

from dataclasses import dataclass

from modestream_client.kafka_record import Headers, Record

__all__ = ["Headers", "Outgoing", "Record"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write. Default partition: that of the key; default timestamp: the time of writing."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    is_unhurried: bool = False
    """True if no caller waits for it: more such records go in one request."""
