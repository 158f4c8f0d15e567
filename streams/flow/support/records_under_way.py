"""Which records of a partition are being handled: what was written before a certain time is finished without them."""


class RecordsUnderWay:
    """The records of a partition that are being handled, numbered in the order of their beginning."""

    def __init__(self) -> None:
        self._next = 0
        self._open: dict[int, None] = {}
        self._looked_at = 0
        """The number that was the next at the last look that found all earlier ones finished."""

    def begin(self) -> int:
        """Return the next number."""
        self._open[self._next] = None
        self._next += 1
        return self._next - 1

    def finish(self, number: int) -> None:
        """Note the end of a record, also of one that was abandoned."""
        self._open.pop(number, None)

    def abandon(self) -> None:
        """Count all records as finished."""
        self._open.clear()

    def are_earlier_finished(self) -> bool:
        """True if all records are finished that had begun when this was true before."""
        if next(iter(self._open), self._next) < self._looked_at:
            return False
        self._looked_at = self._next
        return True
