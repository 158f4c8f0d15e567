"""Answer map requests: the memories of a mode as points in a plane, a cloud for each vector space.

Every point belongs to the request's selector; memories without a vector are counted. What is forgotten while a map is
made is not on it. Kept maps are derived from the vector index, and lose a memory when it is forgotten, moved or edited.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from modestream_client.results import MemoryCloud, MemoryMap, PlacedMemory

from agents.maps.layouts import CloudMemories, DrawnCloud, Layouts, MapMemories, location_of, spaces_by_mode
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import VectorIndex
from agents.ports.stores import Memories, Modes
from agents.rules.answer.hits import SearchWarning, warn_other_modes
from agents.rules.query.plans import count_other_modes, current_mode, requested_modes
from schemas.failures import ModelMissing
from schemas.messages.retrieval import MAX_POINT_TEXT_CHARS, MapRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import iso, milliseconds_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.modes import VectorSpace

RECORDS_AT_ONCE = 200
"""Records read between two pauses for the event loop: about 4 ms."""

DECIMALS = 5
"""Of a coordinate: a hundredth of a pixel on a large screen, and less of a reply than all digits."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DrawMap:
    """Map requests in, clouds out; changed memories in, their points taken out of the kept maps."""

    memories: Memories
    modes: Modes
    spaces: VectorSpaces
    index: VectorIndex
    map_memories: MapMemories
    layouts: Layouts

    async def answer(self, request: MapRequest) -> tuple[MemoryMap, list[SearchWarning]]:
        """Return result and warnings. Raises Rejected for an undeclared mode, Unavailable without the index."""
        collections = await self.index.spaces()
        stored = [VectorSpace.held_by(name, fingerprint) for name, fingerprint in collections.items()]
        boundary, scope = request.scope.boundary, request.scope.fields()
        declared, projects = self.modes.get(boundary), scope.get(PROJECT_FIELD)
        if request.mode is None:
            names = [current_mode(None, declared, projects)]
        else:
            names = requested_modes(request.mode, declared, projects)
        where = MemoryFilter(
            boundary=boundary,
            scope=scope,
            modes=tuple(names),
            since_ms=None if request.since is None else milliseconds_of(request.since),
            until_ms=None if request.until is None else milliseconds_of(request.until),
        )
        current: dict[str, VectorSpace] = {}
        for mode in self.spaces.visible(where.boundary, where.scope.get(PROJECT_FIELD)):
            try:
                # A project's own mode may have another space besides.
                current.setdefault(mode.name, self.spaces.resolve(mode)[1])
            except ModelMissing:
                continue
        spaces = spaces_by_mode(where.modes or (), stored, current)
        warnings: list[SearchWarning] = []
        if request.mode is None:
            columns = self.map_memories.columns(where.boundary)
            warnings = warn_other_modes(count_other_modes(columns, where, include_superseded=False))
        clouds = self.map_memories.clouds(where, spaces, request.limit)
        return MemoryMap(clouds=[await self._cloud(where.boundary, cloud) for cloud in clouds]), warnings

    async def prune(self, boundary: str) -> None:
        """Remove forgotten and moved memories from a user's cached maps."""
        await self.layouts.prune(boundary)

    async def outdate(self, boundary: str, edited: Sequence[str]) -> None:
        """Remove memories with a new text from a user's cached maps: their position changes."""
        await self.layouts.outdate(boundary, edited)

    async def _cloud(self, boundary: str, cloud: CloudMemories) -> MemoryCloud:
        space = None if cloud.space is None else cloud.space.fingerprint.digest
        if cloud.space is None or not cloud.shown:
            return _cloud_of(cloud, space, None, [], cloud.left_out)
        drawn = await self.layouts.draw(boundary, cloud.space, cloud)
        row_of = drawn.layout.rows()
        placed = [(memory_id, row_of[memory_id]) for memory_id in cloud.shown if memory_id in row_of]
        points = []
        for number, (shown_id, row) in enumerate(placed):
            if (memory := self.memories.excerpt(shown_id)) is not None:
                x, y = drawn.layout.places[row].tolist()
                points.append(
                    PlacedMemory(
                        memory_id=memory.memory_id,
                        x=round(x, DECIMALS),
                        y=round(y, DECIMALS),
                        conversation_id=memory.conversation_id,
                        type=memory.type,
                        occurred_at=iso(memory.occurred_at),
                        text=memory.text[:MAX_POINT_TEXT_CHARS],
                    )
                )
            if number % RECORDS_AT_ONCE == RECORDS_AT_ONCE - 1:
                await asyncio.sleep(0)
        # What was read before a pause may be forgotten or moved by now.
        ids = [point.memory_id for point in points]
        present = self.map_memories.are_present(boundary, location_of(cloud.space), ids)
        points = [point for point, is_present in zip(points, present.tolist(), strict=True) if is_present]
        return _cloud_of(cloud, space, drawn, points, cloud.left_out + len(cloud.shown) - len(placed))


def _cloud_of(
    cloud: CloudMemories, space: str | None, drawn: DrawnCloud | None, points: list[PlacedMemory], left_out: int
) -> MemoryCloud:
    return MemoryCloud(
        mode=cloud.mode,
        space=space,
        method="principal_components" if drawn is not None and drawn.is_projected else "neighbour_graph",
        made_at=None if drawn is None else iso(drawn.layout.made_at),
        settled=drawn is None or drawn.is_settled,
        points=points,
        left_out=left_out,
    )
