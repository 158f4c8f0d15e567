"""A point as it is held beside the engine: what filters ask of it, and its vectors, unpacked."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from schemas.vectors import MemoryFilter, Point
from streams.adapters.vectors.embedded.edge_packing import Unpacked


class FilterFields(NamedTuple):
    """What filters ask of a point beside its time."""

    mode: str
    type: str
    scope: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, mode: str, type_: str, scope: Mapping[str, str]) -> Self:
        """The kind of points with such a payload."""
        return cls(mode, type_, tuple(sorted(scope.items())))

    def admitted(self, where: MemoryFilter) -> bool:
        """Whether a read may see such points."""
        return where.admits(self.mode, self.type, dict(self.scope))


class PointRow(NamedTuple):
    """A point as it is held."""

    memory_id: str
    kind: FilterFields
    occurred_ms: int
    vectors: Unpacked

    @classmethod
    def of(cls, point: Point, vectors: Unpacked) -> Self:
        """A point with its vectors, unpacked."""
        return cls(point.memory_id, FilterFields.of(point.mode, point.type, point.scope), point.occurred_ms, vectors)
