"""A cache of parsed table values under their bytes.

An entry is what these very bytes say, no matter where they came from: keys of the table play no part. The cache is
bounded in values and in bytes.
"""

from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

MAX_PARSED_BYTES = 4 * 1024 * 1024
"""Serialised bytes of all cached values of a table. Parsed, usual ones take 6 to 7 times as much (measured: modes of
1,191 bytes 6,988, memories of 902 bytes 6,488), so a full cache has some 30 MB."""


class ParsedValueCache(dict[bytes, Value]):
    """`cache[value]` parses what is not cached yet. Callers must not change the result.

    A dict subclass, so that a lookup is one call: a query makes a thousand.
    """

    def __init__(
        self, parse: Callable[[bytes], Value], max_values: int, max_value_bytes: int = MAX_PARSED_BYTES
    ) -> None:
        """Cache at most `max_values` values, each of at most `max_value_bytes`."""
        super().__init__()
        self._parse = parse
        self._max_values = max_values
        self._max_value_bytes = max_value_bytes
        self._bytes = 0

    def __missing__(self, value: bytes) -> Value:
        """Parse a value, and cache it."""
        parsed = self._parse(value)
        self.add(value, parsed)
        return parsed

    def add(self, value: bytes, parsed: Value) -> None:
        """Cache a parsed value; a full cache is emptied first."""
        if value not in self and len(value) <= self._max_value_bytes:
            if len(self) >= self._max_values or self._bytes + len(value) > MAX_PARSED_BYTES:
                self.clear()
                self._bytes = 0
            self[value] = parsed
            self._bytes += len(value)
