"""Lines of libraries that are repeated: while a broker is away aiokafka writes some 200 a second.

Enters: a log record. Leaves: whether it is written. Guaranteed: each kind of line is written once in `REPEAT_AFTER_S`,
and the next one tells how many were left out.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

REPEAT_AFTER_S = 5.0
"""Seconds after which a line of the same kind is written again."""

MAX_KINDS = 256
"""Kinds of lines that are remembered, the last ones: some libraries write the variable part into the template."""


@dataclass(slots=True)
class Kind:
    """When a line of one kind was written last, and how many were left out since."""

    written_at: float
    left_out: int = 0


class RepeatedLines(logging.Filter):
    """Lets the lines of one kind through at intervals: those of one logger, level and template."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: OrderedDict[tuple[str, int, str], Kind] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line is to be written; tell in it how many were left out before."""
        now, key = self._clock(), (record.name, record.levelno, str(record.msg))
        kind = self._kinds.get(key)
        if kind is not None and now < kind.written_at + REPEAT_AFTER_S:
            kind.left_out += 1
            return False
        self._kinds[key] = Kind(now)
        self._kinds.move_to_end(key)
        if len(self._kinds) > MAX_KINDS:
            self._kinds.popitem(last=False)
        if kind is not None and kind.left_out:
            record.msg, record.args = f"{record.getMessage()} ({kind.left_out} more since the last such line)", None
        return True
