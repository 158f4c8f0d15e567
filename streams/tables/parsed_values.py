"""Values of a table that are read again and again: parsed once, and kept by their bytes.

In go a value's bytes; out comes what they say. Guaranteed: it is what these very bytes say, whoever wrote them, as it
is never looked up by its key; and there are never more than so many.
"""

import math
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class ParsedValueCache(dict[bytes, Value]):
    """What values say, by their bytes: `parsed[value]` parses what is not there yet. Whoever gets one leaves it as is.

    A dict of its own kind, as a lookup is then one call: a question makes a thousand.
    """

    def __init__(self, parse: Callable[[bytes], Value], most: int, longest: float = math.inf) -> None:
        """Take what parses, how many values are kept, and the bytes of the longest one that is kept."""
        super().__init__()
        self._parse = parse
        self._most = most
        self._longest = longest

    def __missing__(self, value: bytes) -> Value:
        """Parse a value. Where there is no room for it, all that is kept goes."""
        parsed = self._parse(value)
        if len(value) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[value] = parsed
        return parsed
