"""Maps of memories, parsed from replies."""

from pydantic import BaseModel

from modestream_client.vocabulary import MemoryType


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

    `settled` is False while a better layout is being made, from `made_at` on. `left_out` counts memories without a
    vector, and those beyond the limit.
    """

    mode: str
    space: str | None
    method: str
    made_at: str | None
    settled: bool
    points: tuple[PlacedMemory, ...]
    left_out: int


class MemoryMap(BaseModel, frozen=True):
    """A cloud for each vector space. Points of two clouds have no distance."""

    clouds: tuple[MemoryCloud, ...]
