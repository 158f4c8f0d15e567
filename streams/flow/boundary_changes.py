"""Which boundaries have changed since their records were published, besides the writes that the lexical index tells.

Enters: changed declarations of modes, and forgotten users. Leaves: what is to be published. Nothing is lost in a crash:
a worker compares all boundaries of a partition when it arrives, and the tombstone of a forgotten user is written before
the change is acknowledged.
"""

from collections import defaultdict
from collections.abc import Iterable


class BoundaryChanges:
    def __init__(self) -> None:
        self._changed: defaultdict[int, set[str]] = defaultdict(set)
        self.forgets = 0
        """Number of boundaries forgotten so far; tells whether a count is older than a forgetting."""
        self._forgotten: dict[str, int] = {}
        """Boundaries whose last record is a tombstone, with the value of `forgets` at the time; 100 bytes each."""

    def changed(self, partition: int, boundary: str) -> None:
        """Note a boundary whose declarations have changed: it has data again, even if it was forgotten before."""
        self._changed[partition].add(boundary)
        self._forgotten.pop(boundary, None)

    def forgotten(self, partition: int, boundary: str) -> None:
        """Note a forgotten boundary. Call after the commit, just before its tombstone is sent."""
        self._changed[partition].add(boundary)
        self.forgets += 1
        self._forgotten[boundary] = self.forgets

    def take(self, partition: int) -> set[str]:
        """Return the boundaries that were noted since the last call."""
        return self._changed.pop(partition, set())

    def count_again(self, partition: int, boundaries: Iterable[str]) -> None:
        """Note boundaries that could not be counted."""
        self._changed[partition].update(boundaries)

    def is_due(self, partition: int, boundary: str) -> bool:
        """True if the boundary was noted since the last `take`."""
        return boundary in self._changed.get(partition, ())

    def may_follow_tombstone(self, boundary: str, forgets: int, memories: int) -> bool:
        """True unless the boundary was forgotten and this count is of before, or of nothing since.

        `forgets`: the value of `self.forgets` when the count began.
        """
        if self._forgotten.get(boundary, 0) > forgets:
            return False
        if memories:
            self._forgotten.pop(boundary, None)
        return boundary not in self._forgotten
