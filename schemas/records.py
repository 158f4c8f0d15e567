"""A Kafka record as it arrives, and one as it is to be written; bytes in both, so that nothing is changed unseen."""

from dataclasses import dataclass, field

Headers = tuple[tuple[str, bytes | None], ...]
"""Names may repeat; a value may be null, which is not an empty one where a record is written on."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record that was read. `timestamp_ms` is milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def header(self, name: str) -> bytes | None:
        """The value of the first header of that name, a null one read as empty; None where there is no such header."""
        return next((value or b"" for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write. No partition: that of the key; no timestamp: the time of writing."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default=())
    partition: int | None = None
    timestamp_ms: int | None = None
