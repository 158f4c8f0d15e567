"""Fillers: meaningless records that make Kafka begin a new segment of an otherwise silent topic.

Kafka deletes and compacts whole segments, and never the active one: without a further record, deleted data in it stays
on the disk forever. Readers of the worker skip fillers; others meet an unknown kind.
"""

from schemas.messages.records import Outgoing, Record

FILLER_HEADER = "modestream_filler"

FILLER_VALUE = b'{"schema":"filler.v1"}'

FILLER_KEY = "filler"
"""The deleted key that fills a table's changelog: no table has it."""


def filler(topic: str, partition: int) -> Outgoing:
    return Outgoing(topic, None, FILLER_VALUE, ((FILLER_HEADER, b""),), partition, is_unhurried=True)


def is_filler(record: Record) -> bool:
    """True for a filler. No client's record is mistaken for one: the value is as fixed as the header."""
    return record.value == FILLER_VALUE and record.header(FILLER_HEADER) is not None
