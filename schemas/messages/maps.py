"""Map requests and the maps that answer them (docs/contract.md)."""

from typing import Annotated, Literal

from modestream_client.vocabulary import MemoryType
from pydantic import BaseModel, Field

from schemas.moments import Moment
from schemas.scopes import Selector

MAX_MAP_POINTS = 20_000
"""Points of one map: more can't be told apart, and their reply would hardly fit into a record."""

DEFAULT_MAP_POINTS = 5_000
"""Points of a map without a limit."""

MAX_POINT_TEXT_CHARS = 80
"""Characters of a point's text: enough to know a memory again."""

MapMethod = Literal["neighbour_graph", "principal_components"]
"""`neighbour_graph`: what is near in meaning lies near; `principal_components`: at once, until the other is made."""


class MapRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`map.v1`. Without a mode that of the scope."""

    scope: Selector
    mode: str | list[str] | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_MAP_POINTS)] = DEFAULT_MAP_POINTS
    read_after: Annotated[int, Field(ge=0)] | None = None


class MapPoint(BaseModel, frozen=True):
    """One memory; `x` and `y` are in -1..1, `text` is the beginning of its text."""

    memory_id: str
    x: float
    y: float
    conversation_id: str | None
    type: MemoryType
    occurred_at: str
    text: str


class MapCloud(BaseModel, frozen=True):
    """The memories of one vector space in a plane.

    `space` is the digest of the space, None while the mode's model was never loaded. `made_at` is the time of the
    layout, None without points. `left_out` counts memories without a vector and those beyond the limit.
    """

    mode: str
    space: str | None
    method: MapMethod
    made_at: str | None
    settled: bool
    points: list[MapPoint]
    left_out: int


class MapResult(BaseModel, frozen=True):
    """A cloud for each vector space: points of two clouds have no distance."""

    clouds: list[MapCloud]
