"""A cache of parsed table values under their bytes.

An entry is what these very bytes say, no matter where they came from: keys of the table play no part.
"""

import math
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class ParsedValueCache(dict[bytes, Value]):
    """`cache[value]` parses what is not cached yet. Callers must not change the result.

    A dict subclass, so that a lookup is one call: a query makes a thousand.
    """

    def __init__(self, parse: Callable[[bytes], Value], max_values: int, max_bytes: float = math.inf) -> None:
        """Cache at most `max_values` values, each of at most `max_bytes`."""
        super().__init__()
        self._parse = parse
        self._max_values = max_values
        self._max_bytes = max_bytes

    def __missing__(self, value: bytes) -> Value:
        """Parse a value; a full cache is emptied first."""
        parsed = self._parse(value)
        if len(value) <= self._max_bytes:
            if len(self) >= self._max_values:
                self.clear()
            self[value] = parsed
        return parsed
