"""A Kafka record as read, with key, value and headers as raw bytes."""

from dataclasses import dataclass

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
    """A moment of the reader's steady clock after which it was written; None: not known."""

    def header(self, name: str) -> bytes | None:
        """Return the first header of that name, a null value as empty; None if there is no such header."""
        return next((value or b"" for key, value in self.headers if key == name), None)
