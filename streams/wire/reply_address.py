"""Reply address and deadline of a request, parsed from its headers in any of three dialects."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from schemas.failures import Rejected
from schemas.messages.records import Record
from schemas.messages.replies import ReplyAddress


@dataclass(frozen=True, slots=True)
class Dialect:
    """Header names of one client library, and its encoding of a partition."""

    topic: str
    correlation: str
    partition: str
    partition_encoding: Literal["decimal", "big_endian"]


DIALECTS = (
    Dialect("reply_to", "correlation_id", "reply_partition", "decimal"),
    Dialect("kafka_replyTopic", "kafka_correlationId", "kafka_replyPartition", "big_endian"),
    Dialect("REPLY_TOPIC", "REPLY_CORRELATION_ID", "REPLY_PARTITION", "big_endian"),
)
"""Ours, Spring Kafka's and SmallRye's; the first one with a topic header counts. Its missing headers may come from
another dialect that names no topic: the names are aliases, and gateways mix them."""

MAX_TOPIC_CHARS = 249
"""Kafka's limit of a topic name."""


def parse_reply_address(record: Record, replies: str) -> ReplyAddress | None:
    """Return the reply address of a record, without its partition, or None.

    Only `replies`, the shared reply topic, and the topics below it are allowed.
    Raises Rejected `reply_topic_refused` for any other.
    """
    dialect = _dialect(record)
    if dialect is None:
        return None
    topic = _allowed(record.header(dialect.topic) or b"", replies)
    headers = ((each.correlation, record.header(each.correlation)) for each in _candidates(record, dialect))
    correlation = next(((name, value) for name, value in headers if value is not None), None)
    return ReplyAddress(topic, None, correlation)


def with_reply_partition(address: ReplyAddress | None, record: Record) -> ReplyAddress | None:
    """Add the partition that the record names to the address. Raises Rejected if that is not a number."""
    dialect = _dialect(record)
    if address is None or dialect is None:
        return address
    source = next((each for each in _candidates(record, dialect) if record.header(each.partition) is not None), dialect)
    return replace(address, partition=_partition(record.header(source.partition), source))


def deadline_ms(record: Record) -> int | None:
    """Return the time at which the caller stops waiting, in milliseconds since the epoch, or None."""
    header = record.header("deadline")
    if header is None:
        return None
    if not re.fullmatch(rb"[0-9]{1,20}", header):
        raise Rejected("invalid_value", "the header deadline is not milliseconds in ASCII digits", "headers.deadline")
    return int(header)


def _dialect(record: Record) -> Dialect | None:
    return next((dialect for dialect in DIALECTS if record.header(dialect.topic) is not None), None)


def _candidates(record: Record, dialect: Dialect) -> tuple[Dialect, ...]:
    """Return the dialects to take further headers from, that of the topic first."""
    return (dialect, *(other for other in DIALECTS if record.header(other.topic) is None))


def _allowed(topic: bytes, replies: str) -> str:
    name = topic.decode(errors="replace")
    if len(name) > MAX_TOPIC_CHARS or not re.fullmatch(re.escape(replies) + r"(\.[A-Za-z0-9._-]+)?", name):
        raise Rejected("reply_topic_refused", f"replies go to {replies} or {replies}.<name> only, not to {name[:80]!r}")
    return name


def _partition(header: bytes | None, dialect: Dialect) -> int | None:
    if header is None:
        return None
    if dialect.partition_encoding == "decimal" and re.fullmatch(rb"[0-9]{1,20}", header):
        return int(header)
    if dialect.partition_encoding == "big_endian" and len(header) == 4 and header[0] < 128:
        return int.from_bytes(header, "big")
    field = f"headers.{dialect.partition}"
    raise Rejected("invalid_value", f"the header {dialect.partition} is not a partition number", field)
