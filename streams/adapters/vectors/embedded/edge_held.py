"""Which boundaries' vectors are held in memory between questions; the least recently asked for is given up first.

Whoever writes to the engine tells what was written, so what is held says at any moment what the engine says. A
boundary that can't be held is remembered as such. Which it is follows from its own points alone, so nobody else's
memories decide how a question of it is counted.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from schemas.vectors import Point
from streams.adapters.vectors.embedded.edge_boundary import BoundaryVectors
from streams.adapters.vectors.embedded.edge_packing import Unpacked
from streams.adapters.vectors.embedded.edge_rows import PointRow

MAX_HELD_BYTES = 256 * 2**20
"""What is held in all: 70,000 short memories."""

MAX_HELD_POINTS = 10_000
"""Points of a boundary beyond which the engine is asked: to read so many the first time takes half a second, or twice
that where a page of a file that is mapped into memory costs much."""

CollectionKey = tuple[str, str]
"""A collection, and a boundary or a memory in it."""

WrittenPoint = tuple[Point, Unpacked | None]
"""A point that the engine has taken, with its vectors as they are held; None where they can't be."""


class BoundaryCache:
    """What is held of all collections of one index."""

    def __init__(self, most_bytes: int = MAX_HELD_BYTES, most_points: int = MAX_HELD_POINTS) -> None:
        self.most_points = most_points
        self.writes: Counter[str] = Counter()
        """How often each collection was written to: what was read while this changed may be neither old nor new."""
        self._most_bytes = most_bytes
        self._held: OrderedDict[CollectionKey, BoundaryVectors | None] = OrderedDict()
        self._sizes: Counter[CollectionKey] = Counter()
        self._bytes = 0
        self._homes: dict[CollectionKey, str] = {}

    def knows(self, place: CollectionKey) -> bool:
        """Whether it is known how a boundary is asked."""
        return place in self._held

    def get(self, place: CollectionKey) -> BoundaryVectors | None:
        """A known boundary's vectors; None where the engine is to be asked."""
        self._held.move_to_end(place)
        return self._held[place]

    def keep(self, place: CollectionKey, vectors: BoundaryVectors | None) -> None:
        """Hold a boundary, or remember that it can't be held."""
        self.drop(place)
        self._held[place] = vectors
        if vectors is not None:
            self._homes.update(((place[0], one), place[1]) for one in vectors.rows)
            self._weigh(place, vectors)

    def written(self, collection: str, taken: Iterable[WrittenPoint]) -> None:
        """Follow points that the engine has taken."""
        self.writes[collection] += 1
        for point, vectors in taken:
            self._leave(collection, point.memory_id)
            place = collection, point.boundary
            held = self._held.get(place)
            if held is not None:
                self._follow(place, held, point, vectors)

    def removed(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Follow points that the engine has let go."""
        self.writes[collection] += 1
        for memory_id in memory_ids:
            self._leave(collection, memory_id)

    def drop(self, place: CollectionKey) -> None:
        """Hold a boundary no longer; what is not known is read when it is asked for."""
        vectors = self._held.pop(place, None)
        self._bytes -= self._sizes.pop(place, 0)
        for memory_id in vectors.rows if vectors is not None else ():
            self._homes.pop((place[0], memory_id), None)

    def drop_all(self, collection: str) -> None:
        """Hold nothing of a collection: what it has is not certain."""
        self.writes[collection] += 1
        for place in [place for place in self._held if place[0] == collection]:
            self.drop(place)

    def _follow(self, place: CollectionKey, held: BoundaryVectors, point: Point, vectors: Unpacked | None) -> None:
        if vectors is None or len(held.rows) >= self.most_points:
            self.keep(place, None)
            return
        held.put([PointRow.of(point, vectors)])
        self._homes[place[0], point.memory_id] = place[1]
        if held.needs_compaction:
            self.drop(place)
        else:
            self._weigh(place, held)

    def _leave(self, collection: str, memory_id: str) -> None:
        home = self._homes.pop((collection, memory_id), None)
        held = None if home is None else self._held.get((collection, home))
        if held is not None:
            held.remove(memory_id)

    def _weigh(self, place: CollectionKey, vectors: BoundaryVectors) -> None:
        self._bytes += vectors.size - self._sizes[place]
        self._sizes[place] = vectors.size
        while self._bytes > self._most_bytes and len(self._held) > 1:
            oldest = next(iter(self._held))
            self.drop(oldest)
