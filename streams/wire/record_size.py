"""The size of a record as Kafka counts it, to know before sending whether Kafka will refuse it. Pure."""

from schemas.messages.records import Headers, Outgoing

BATCH_OVERHEAD_BYTES = 128
"""Bytes of a batch with one record besides key, value and headers: 61 of the batch, at most 40 of the record."""

HEADER_OVERHEAD_BYTES = 10
"""Bytes of a header besides name and value: two lengths of at most 5 bytes."""


def size_of(out: Outgoing) -> int:
    """Return the bytes of a batch with this record alone, rounded up by less than 100: Kafka limits batches."""
    return BATCH_OVERHEAD_BYTES + len(out.key or b"") + len(out.value or b"") + headers_size(out.headers)


def headers_size(headers: Headers) -> int:
    """Return the bytes of headers in a record."""
    return sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD_BYTES for name, value in headers)
