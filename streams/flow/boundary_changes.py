"""Which boundaries have changed since their records were published, besides the writes that the lexical index tells.

Enters: changed declarations of modes, and forgotten users. Leaves: what is to be published. Nothing is lost in a crash:
a worker compares all boundaries of a partition when it arrives, and the tombstone of a forgotten user is written before
the change is acknowledged.
"""

from collections import defaultdict
from collections.abc import Iterable


class BoundaryChanges:
    """The changed boundaries of a worker."""

    def __init__(self) -> None:
        self._changed: defaultdict[int, set[str]] = defaultdict(set)
        self._forgotten: set[str] = set()

    def changed(self, partition: int, boundary: str) -> None:
        """Note a boundary whose declarations have changed: it has something, also after it was forgotten."""
        self._changed[partition].add(boundary)
        self._forgotten.discard(boundary)

    def forgotten(self, partition: int, boundary: str) -> None:
        """Note a boundary that was forgotten, once this is committed and just before its tombstone is sent."""
        self._changed[partition].add(boundary)
        self._forgotten.add(boundary)

    def take(self, partition: int) -> set[str]:
        """Return the boundaries that were noted since the last call."""
        return self._changed.pop(partition, set())

    def count_again(self, partition: int, boundaries: Iterable[str]) -> None:
        """Note boundaries that could not be counted."""
        self._changed[partition].update(boundaries)

    def is_due(self, partition: int, boundary: str) -> bool:
        """True if the boundary was noted since the last `take`."""
        return boundary in self._changed.get(partition, ())

    def is_just_forgotten(self, partition: int, boundary: str) -> bool:
        """True if the boundary was forgotten since the last `take`: what was counted before is outdated."""
        return boundary in self._forgotten and self.is_due(partition, boundary)

    def end_forgetting(self, boundary: str) -> bool:
        """Return True, once, for a boundary that was forgotten and not declared in since: its tombstone is written."""
        was_forgotten = boundary in self._forgotten
        self._forgotten.discard(boundary)
        return was_forgotten
