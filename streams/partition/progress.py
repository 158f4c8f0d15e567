"""Progress of reading and applying turns, by partition and boundary: `read_after` and commands wait for it.

Turns of one boundary are applied in the order of their partition; those of other boundaries may overtake them.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable


class AppliedOffsets:
    """Applied turns of each partition. Everything before the first waiting one is applied."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}
        self.starts: Counter[int] = Counter()
        """How often each partition was taken."""
        self._waiting: defaultdict[int, WaitingTurns] = defaultdict(WaitingTurns)
        self._changed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def start(self, partition: int, next_offset: int) -> None:
        """Record that everything before `next_offset` is applied, and that it is read next."""
        self.starts[partition] += 1
        self._read[partition] = next_offset
        self._waiting.pop(partition, None)
        self._notify(partition)

    def leave(self, partition: int) -> None:
        """Record that a partition belongs to another worker."""
        self._read.pop(partition, None)
        self._waiting.pop(partition, None)

    def arrive(self, partition: int, offset: int, boundary: str) -> None:
        """Record that a turn was read and waits. One that is read again comes before all that have waited."""
        if offset < self._read.get(partition, 0):
            self._waiting.pop(partition, None)
        self._waiting[partition].add(offset, boundary)
        self._read[partition] = offset + 1

    def finish(self, partition: int, offset: int) -> None:
        """Record that a turn, and with it every earlier one of its boundary, is applied and visible."""
        self._waiting[partition].remove(offset)
        self._read[partition] = max(offset + 1, self._read.get(partition, 0))
        self._notify(partition)

    def next_offset(self, partition: int, boundary: str | None = None) -> int | None:
        """Return the first unapplied offset; with `boundary`, considering only turns that may be its own.

        None for a partition of another worker.
        """
        read = self._read.get(partition)
        return None if read is None else self._waiting[partition].first(boundary, read)

    def is_applied(self, partition: int, offset: int, boundary: str | None = None) -> bool:
        """True if the offset and everything before it is applied; with `boundary`, only as far as its turns."""
        return (self.next_offset(partition, boundary) or 0) > offset

    async def reached(self, partition: int, offset: int, within: float, boundary: str | None = None) -> bool:
        """Wait at most `within` seconds; return True if `offset` is applied, as in `is_applied`."""
        return await self.until(partition, lambda: self.is_applied(partition, offset, boundary), within)

    async def until(self, partition: int, condition: Callable[[], bool], within: float) -> bool:
        """Wait at most `within` seconds for a condition that applied turns fulfil; return whether it holds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    await self._changed[partition].wait()
        except TimeoutError:
            return False
        return True

    def _notify(self, partition: int) -> None:
        self._changed.pop(partition, asyncio.Event()).set()


class WaitingTurns:
    """Offsets of one partition that are read but not applied, in order. All operations take constant time."""

    def __init__(self) -> None:
        self._boundary_of: OrderedDict[int, str] = OrderedDict()
        self._by_boundary: dict[str, deque[int]] = {}

    def add(self, offset: int, boundary: str) -> None:
        """Append an offset, higher than all before."""
        self._boundary_of[offset] = boundary
        self._by_boundary.setdefault(boundary, deque()).append(offset)

    def remove(self, offset: int) -> None:
        """Remove an offset, the first of its boundary; ignore one that does not wait."""
        boundary = self._boundary_of.pop(offset, None)
        if boundary is not None:
            line = self._by_boundary[boundary]
            line.popleft()
            if not line:
                del self._by_boundary[boundary]

    def first(self, boundary: str | None, otherwise: int) -> int:
        if boundary is not None:
            line = self._by_boundary.get(boundary)
            return line[0] if line else otherwise
        return next(iter(self._boundary_of), otherwise)
