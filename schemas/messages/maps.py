"""Map requests (docs/contract.md)."""

from typing import Annotated

from modestream_client.fields import Moment
from pydantic import BaseModel, Field

from schemas.messages.retrieval import ModeNames
from schemas.scopes import Selector

MAX_MAP_POINTS = 20_000
"""Points of one map: more can't be told apart, and their reply would hardly fit into a record."""

DEFAULT_MAP_POINTS = 5_000
"""Points of a map without a limit."""

MAX_POINT_TEXT_CHARS = 80
"""Characters of a point's text: enough to know a memory again."""


class MapRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`map.v1`. Without a mode that of the scope."""

    scope: Selector
    mode: ModeNames = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_MAP_POINTS)] = DEFAULT_MAP_POINTS
    read_after: Annotated[int, Field(ge=0)] | None = None
