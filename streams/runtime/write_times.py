"""An upper bound of a record's age, without the time of day of any machine.

Enters: the end of a partition's log in each response to a fetch. Leaves: a moment after which a record was written: the
log ended before it in a response that was requested after the former one had come. Clocks of callers, brokers and
workers may disagree by any amount; moments are those of a steady clock.
"""

from bisect import bisect_right

MIN_STEP_S = 0.1
"""Minimum distance between two stored end offsets."""

MAX_ENDS = 256
"""Number of stored ends: half a minute under load. The age of an earlier record is unknown."""


class WriteTimes:
    """The ends of one partition's log."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._asked_after: list[float] = []
        """Earliest time at which each end was requested."""
        self._response: int | None = None
        self._former_came_s: float | None = None
        self._looked_s: float | None = None

    def note(self, end: int, response_ms: int, now_ms: int, steady_s: float) -> None:
        """Note the end in the last response. Call it after every poll, with or without a response.

        `response_ms` is the time of day at which it came and distinguishes it from others, `now_ms` the present one.
        """
        looked_s, self._looked_s = self._looked_s, steady_s
        if response_ms == self._response:
            return
        self._response = response_ms
        former_s, self._former_came_s = self._former_came_s, _came_s(looked_s, now_ms - response_ms, steady_s)
        if former_s is not None and (not self._asked_after or former_s - self._asked_after[-1] >= MIN_STEP_S):
            self._ends.append(end)
            self._asked_after.append(former_s)
            del self._ends[:-MAX_ENDS], self._asked_after[:-MAX_ENDS]

    def written_after(self, offset: int) -> float | None:
        """Return a moment after which the record was written, on the steady clock; None if unknown."""
        place = bisect_right(self._ends, offset)
        return self._asked_after[place - 1] if place else None


def _came_s(looked_s: float | None, age_ms: int, steady_s: float) -> float | None:
    """Return the earliest time of a response: after the last check, which did not see it.

    Its age by the time of day is closer, unless the clock was set meanwhile.
    """
    if looked_s is None or age_ms < 0:
        return looked_s
    return max(looked_s, steady_s - age_ms / 1000)
