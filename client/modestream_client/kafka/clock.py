"""The time of day by Kafka's clock, for a machine whose own is wrong.

Enters: the times at which brokers wrote the replies that this client reads. Leaves: the time of day for records and
deadlines: the own clock's, unless it is far from Kafka's. Kafka refuses records from more than an hour ahead, and a
deadline that an hour is added to or taken from means nothing.
"""

import time
from collections.abc import Callable

MAX_DIFFERENCE_MS = 10 * 60 * 1000
"""Clocks may differ by this: far more than a reply takes, far less than the hour that Kafka allows."""


def _steady_ms() -> float:
    """Return milliseconds that go on whatever the time is set to, where possible while the machine is suspended too."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "clock_gettime") else None
    return 1000 * (time.monotonic() if clock is None else time.clock_gettime(clock))


MAX_DISAGREEING = 3
"""Own replies in a row that, written long before Kafka's supposed time, say that Kafka's clock was set back."""


class KafkaClock:
    """Kafka's time, by the replies that were read.

    A reply says that it is at least as late as when it was written: one of a backlog may have been written long ago.
    """

    def __init__(
        self, own_ms: Callable[[], float] = lambda: time.time() * 1000, steady_ms: Callable[[], float] = _steady_ms
    ) -> None:
        self._own_ms = own_ms
        self._steady_ms = steady_ms
        self._began_ms: float | None = None
        """Kafka's time at the zero of the steady clock: the latest that a record says."""
        self._disagreeing: list[float] = []

    def note(self, written_ms: int, *, is_awaited: bool = True) -> None:
        """Take the time at which a broker wrote a record that has just been read; `is_awaited`: an own request's."""
        began_ms = written_ms - self._steady_ms()
        if self._began_ms is None or began_ms >= self._began_ms - MAX_DIFFERENCE_MS:
            self._began_ms = began_ms if self._began_ms is None else max(self._began_ms, began_ms)
            self._disagreeing.clear()
        elif is_awaited:
            self._disagreeing.append(began_ms)
            if len(self._disagreeing) == MAX_DISAGREEING:
                self._began_ms = max(self._disagreeing)
                self._disagreeing.clear()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        corrected = self.corrected_ms()
        return round(self._own_ms()) if corrected is None else corrected

    def corrected_ms(self) -> int | None:
        """Return Kafka's time if the own clock is far from it, else None."""
        if self._began_ms is None:
            return None
        kafka_ms = self._began_ms + self._steady_ms()
        return round(kafka_ms) if abs(self._own_ms() - kafka_ms) > MAX_DIFFERENCE_MS else None
