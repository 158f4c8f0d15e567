"""Maps of memories, parsed from replies."""

from typing import Literal

from pydantic import BaseModel

from modestream_client.vocabulary import MemoryType

MapMethod = Literal["neighbour_graph", "principal_components"]
"""`neighbour_graph`: what is near in meaning lies near; `principal_components`: at once, until the other is made."""


class PlacedMemory(BaseModel, frozen=True):
    """A memory at its place in a cloud; `x` and `y` are within -1..1, `text` is the beginning of its text."""

    memory_id: str
    x: float
    y: float
    conversation_id: str | None
    type: MemoryType
    occurred_at: str
    text: str


class MemoryCloud(BaseModel, frozen=True):
    """The memories of one vector space in a plane: near in meaning is near here.

    `space` is the digest of the space, None while the mode's model was never loaded. `made_at` is the time of the
    layout, None without points. `settled` is False while a better layout is being made. `left_out` counts memories
    without a vector, and those beyond the limit.
    """

    mode: str
    space: str | None
    method: MapMethod
    made_at: str | None
    settled: bool
    points: tuple[PlacedMemory, ...]
    left_out: int


class MemoryMap(BaseModel, frozen=True):
    """A cloud for each vector space. Points of two clouds have no distance."""

    clouds: tuple[MemoryCloud, ...]
