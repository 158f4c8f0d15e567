"""How long ago a record can have been written at most, without the time of day of any machine.

Enters: the end of a partition's log in each response to a fetch. Leaves: a moment after which a record was written: it
was not there when the log ended before it, and that response was asked for after the former one had come. Clocks of
callers, brokers and workers may disagree by any amount; moments are those of a steady clock.
"""

from bisect import bisect_right

MIN_STEP_S = 0.1
"""Ends of less than this after the last kept one are not kept."""

MAX_ENDS = 256
"""Ends that are kept: those of half a minute under load. Of a record from before, nothing is known."""


class WriteTimes:
    """The ends of one partition's log."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._asked_after: list[float] = []
        """When each end was asked for, at the earliest."""
        self._response: int | None = None
        self._former_came_s: float | None = None
        self._looked_s: float | None = None

    def note(self, end: int, response_ms: int, now_ms: int, steady_s: float) -> None:
        """Note the end in the last response. To be called after every poll, whether or not a response has come.

        `response_ms` is the time of day at which it came and tells it from others, `now_ms` that of now.
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
        """Return a moment after which the record was written, on the steady clock; None if none is known."""
        place = bisect_right(self._ends, offset)
        return self._asked_after[place - 1] if place else None


def _came_s(looked_s: float | None, age_ms: int, steady_s: float) -> float | None:
    """Return when a response came, at the earliest: after the last look, at which it was not there.

    Its age by the time of day is closer, unless the clock was set meanwhile.
    """
    if looked_s is None or age_ms < 0:
        return looked_s
    return max(looked_s, steady_s - age_ms / 1000)
