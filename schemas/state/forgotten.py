"""The end of a log when a user was forgotten: earlier records do not belong to the next user of that id."""

from pydantic import BaseModel


class ForgottenBefore(BaseModel, frozen=True):
    """The end of a partition's log when a user was forgotten, and the time of that command in milliseconds.

    By offset and by timestamp: a recreated topic starts at offset 0 again, and its new records have later timestamps.
    """

    offset: int
    at_ms: int

    def covers(self, offset: int, timestamp_ms: int) -> bool:
        """True if a record of the user at this offset was written before the user was forgotten."""
        return offset < self.offset and timestamp_ms <= self.at_ms
