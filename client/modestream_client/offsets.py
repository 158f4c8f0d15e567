"""Places in the turns topic, as text: `"<partition>:<offset>"`, the form of `read_after` over HTTP. Pure."""

import re
from typing import NamedTuple, Self

from modestream_client.failures import MemoryServiceError

TURNS_TOPIC = "turns"
"""The topic of these places, without its prefix."""

READ_AFTER = re.compile(r"(\d{1,9}):(\d{1,18})", re.ASCII)
"""Digits enough for every partition and every 64-bit offset, and few enough that none is a number of unbounded size."""


class Written(NamedTuple):
    """Partition and offset of a written record.

    >>> Written(3, 17).read_after
    '3:17'
    """

    partition: int
    offset: int

    @property
    def read_after(self) -> str:
        """The place as text; pass it as `read_after` to a read that must include this write."""
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `"<partition>:<offset>"`. Raises `MemoryServiceError` with code `invalid_value` for anything else.

        >>> Written.parse("3:17")
        Written(partition=3, offset=17)
        """
        if (found := READ_AFTER.fullmatch(text)) is None:
            raise invalid_read_after(f"{text[:40]!r} is not <partition>:<offset>, as the answers of writes have it")
        return cls(int(found[1]), int(found[2]))


def invalid_read_after(problem: str) -> MemoryServiceError:
    """Build the error for a `read_after` that names no place of the user."""
    return MemoryServiceError("invalid_value", problem, "read_after")
