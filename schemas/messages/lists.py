"""Requests for lists and maps (docs/contract.md)."""

from typing import Annotated, Literal

from modestream_client.arguments import GivenFilters
from modestream_client.vocabulary import EmbeddingStatus, Moment, Role
from pydantic import BaseModel, Field

from schemas.messages.retrieval import MAX_QUERY_LENGTH, MemoryTypes, ModeNames
from schemas.scopes import Selector

MAX_PAGE_ITEMS = 500
"""Items of one page: about 15 ms of work, and a reply of half a megabyte with usual texts."""

MAX_MAP_POINTS = 20_000
"""Points of one map: more can't be told apart, and their reply would hardly fit into a record."""

DEFAULT_MAP_POINTS = 5_000
"""Points of a map without a limit."""

MAX_POINT_TEXT_CHARS = 80
"""Characters of a point's text: enough to recognize a memory."""

ListOrder = Literal["newest", "oldest"]
"""By `occurred_at`, then by memory id; conversations and projects by the time of their last memory."""


class ListRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`list.v1`. The filters select memories; conversations and projects are those of the selected memories.

    `cursor` is the `next` of the page before, of the same request except for `limit`, `read_after` and `facets`, which
    asks for counts by filter with the first page of memories.
    """

    scope: Selector
    what: Literal["memories", "conversations", "projects"]
    mode: ModeNames = None
    conversation_id: str | None = None
    types: MemoryTypes | None = None
    role: Role | None = None
    since: Moment | None = None
    until: Moment | None = None
    contains: Annotated[str, Field(max_length=MAX_QUERY_LENGTH)] | None = None
    filters: GivenFilters = None
    as_of: Moment | None = None
    embedding_status: EmbeddingStatus | None = None
    include_superseded: bool = False
    order: ListOrder = "newest"
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_ITEMS)] = 50
    facets: bool = False
    cursor: str | None = None
    read_after: Annotated[int, Field(ge=0)] | None = None

    @property
    def reads_texts(self) -> bool:
        """True if matches are found by reading records one by one: texts, and the conversations of items."""
        lists_items = self.types is not None and "episodic" not in self.types
        return bool(self.contains) or (lists_items and self.conversation_id is not None)


class MapRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`map.v1`. Default mode: that of the scope."""

    scope: Selector
    mode: ModeNames = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_MAP_POINTS)] = DEFAULT_MAP_POINTS
    read_after: Annotated[int, Field(ge=0)] | None = None
