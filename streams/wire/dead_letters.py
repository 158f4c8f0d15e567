"""Dead letters: the record as it was written, and why it could not be processed (see `docs/contract.md`)."""

from datetime import datetime

from schemas.failures import Rejected
from schemas.messages.records import Outgoing, Record
from schemas.moments import iso


def dead_letter(topic: str, record: Record, error: Rejected, now: datetime) -> Outgoing:
    """Build the dead letter of a record: its key, value and headers unchanged, and six headers of ours."""
    reason = error.message if error.field is None else f"{error.field}: {error.message}"
    ours = (
        ("dead_letter_topic", record.topic.encode()),
        ("dead_letter_partition", str(record.partition).encode()),
        ("dead_letter_offset", str(record.offset).encode()),
        ("dead_letter_code", error.code.encode()),
        ("dead_letter_reason", reason.encode(errors="replace")),
        ("dead_letter_time", iso(now).encode()),
    )
    return Outgoing(topic, record.key, record.value, (*record.headers, *ours))
