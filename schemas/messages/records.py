"""Kafka records as read and as to be written, with keys, values and headers as raw bytes."""

from dataclasses import dataclass, field

Headers = tuple[tuple[str, bytes | None], ...]
"""Names may repeat. A null value is distinct from an empty one, and stays so when a record is copied."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as read. `timestamp_ms` is milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    written_after_s: float | None = None
    """A moment of the worker's steady clock after which it was written; None: not known."""

    def header(self, name: str) -> bytes | None:
        """Return the first header of that name, a null value as empty; None if there is no such header."""
        return next((value or b"" for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write. Default partition: that of the key; default timestamp: the time of writing."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default=())
    partition: int | None = None
    timestamp_ms: int | None = None
    is_unhurried: bool = False
    """True if no caller waits for it: more such records go in one request."""
