"""Dead letters: the original record, and the reason of its rejection (see `docs/contract.md`).

Every dead letter fits into its topic: a too large one has part of its value, and a header that says so.
"""

from dataclasses import replace
from datetime import datetime

from schemas.failures import Rejected
from schemas.messages.records import Headers, Outgoing, Record
from schemas.moments import iso
from streams.topics import MAX_OUTPUT_BYTES

# Fillers: meaningless records that make Kafka begin a new segment of an otherwise silent topic.
#
# Kafka deletes and compacts whole segments, and never the active one: without a further record, deleted data in it
# stays on the disk forever. Readers of the worker skip fillers; others meet an unknown kind.

FILLER_HEADER = "modestream_filler"

FILLER_VALUE = b'{"schema":"filler.v1"}'

FILLER_KEY = "filler"
"""The deleted key that fills a table's changelog: no table has it."""


def filler(topic: str, partition: int) -> Outgoing:
    return Outgoing(topic, None, FILLER_VALUE, ((FILLER_HEADER, b""),), partition, is_unhurried=True)


def is_filler(record: Record) -> bool:
    """True for a filler. No client's record is mistaken for one: the value is as fixed as the header."""
    return record.value == FILLER_VALUE and record.header(FILLER_HEADER) is not None


BATCH_OVERHEAD_BYTES = 128
"""Bytes of a batch with one record besides key, value and headers: 61 of the batch, at most 40 of the record."""

HEADER_OVERHEAD_BYTES = 10
"""Bytes of a header besides name and value: two lengths of at most 5 bytes."""


def size_of(out: Outgoing) -> int:
    """Return the bytes of a batch with this record alone, rounded up by less than 100: Kafka limits batches."""
    return BATCH_OVERHEAD_BYTES + len(out.key or b"") + len(out.value or b"") + headers_size(out.headers)


def headers_size(headers: Headers) -> int:
    return sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD_BYTES for name, value in headers)


MAX_REASON_CHARS = 2000


def dead_letter(topic: str, record: Record, error: Rejected, now: datetime) -> Outgoing:
    """Build the dead letter of a record: its key, value and headers unchanged, and six headers of ours.

    Where all of that exceeds the largest record, the value is cut and `dead_letter_cut` has its length in bytes.
    Headers and key that leave no room, which no client can write, are left out.
    """
    reason = error.message if error.field is None else f"{error.field}: {error.message}"
    ours = (
        ("dead_letter_topic", record.topic.encode()),
        ("dead_letter_partition", str(record.partition).encode()),
        ("dead_letter_offset", str(record.offset).encode()),
        ("dead_letter_code", error.dead_letter_code.encode()),
        ("dead_letter_reason", reason[:MAX_REASON_CHARS].encode(errors="replace")),
        ("dead_letter_time", iso(now).encode()),
    )
    whole = Outgoing(topic, record.key, record.value, (*record.headers, *ours))
    return whole if size_of(whole) <= MAX_OUTPUT_BYTES else _cut(whole, record, ours)


def _cut(letter: Outgoing, record: Record, ours: Headers) -> Outgoing:
    value = record.value or b""
    cut = ("dead_letter_cut", str(len(value)).encode())
    around = replace(letter, value=b"", headers=(*letter.headers, cut))
    if size_of(around) > MAX_OUTPUT_BYTES:
        around = replace(around, key=None, headers=(*ours, cut))
    return replace(around, value=value[: MAX_OUTPUT_BYTES - size_of(around)])
