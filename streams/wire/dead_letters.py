"""What a dead letter looks like: the record as it was written, and why it could not be processed (CONTRACT §7)."""

from datetime import datetime

from schemas.failures import Rejected
from schemas.moments import iso
from schemas.records import Outgoing, Record


def dead_letter(topic: str, record: Record, error: Rejected, now: datetime) -> Outgoing:
    """The dead letter of a record: key, value and headers as they came, and six headers of ours."""
    why = error.message if error.field is None else f"{error.field}: {error.message}"
    ours = (
        ("dead_letter_topic", record.topic.encode()),
        ("dead_letter_partition", str(record.partition).encode()),
        ("dead_letter_offset", str(record.offset).encode()),
        ("dead_letter_code", error.code.encode()),
        ("dead_letter_reason", why.encode(errors="replace")),
        ("dead_letter_time", iso(now).encode()),
    )
    return Outgoing(topic, record.key, record.value, (*record.headers, *ours))
