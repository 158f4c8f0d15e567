"""Fillers: records without meaning, at which Kafka begins a new segment of a topic that nothing else is written to.

Kafka deletes and compacts whole segments, and never the one that is written to: without a further record, what was
deleted from it stays on the disk for ever. Readers of the worker pass over fillers; others meet an unknown kind.
"""

from schemas.messages.records import Outgoing, Record

FILLER_HEADER = "modestream_filler"

FILLER_VALUE = b'{"schema":"filler.v1"}'

FILLER_KEY = "filler"
"""The row that is deleted from a table to fill its changelog: no table has it."""


def filler(topic: str, partition: int) -> Outgoing:
    """Return a filler for a partition."""
    return Outgoing(topic, None, FILLER_VALUE, ((FILLER_HEADER, b""),), partition, is_unhurried=True)


def is_filler(record: Record) -> bool:
    """True for a filler. Nothing that a client could mean is one: the value is as fixed as the header."""
    return record.value == FILLER_VALUE and record.header(FILLER_HEADER) is not None
