"""Requests for searches, lists and maps, and results of searches (docs/contract.md)."""

from typing import Annotated, Any, ClassVar, Literal

from modestream_client.arguments import GivenFilters
from modestream_client.hits import Hit
from modestream_client.vocabulary import EmbeddingStatus, MemoryType, Moment, Role, Strategy
from pydantic import BaseModel, Field

from schemas.scopes import Selector

MAX_QUERY_LENGTH = 32768
"""Maximum characters of a query: the same as of a turn's content."""

ModeNames = str | Annotated[list[str], Field(fail_fast=True)] | None
"""One mode, several, or `*`; None is the request's current mode.

A list ends at its first invalid value: an error for each of millions would take gigabytes.
"""

MemoryTypes = Annotated[list[MemoryType], Field(fail_fast=True)]


class RetrieveRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`retrieve.v1`."""

    prefers_project: ClassVar[bool] = False

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    mode: ModeNames = None
    conversation_id: str | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    min_score: Annotated[float, Field(ge=0, le=1)] = 0.0
    types: MemoryTypes | None = None
    since: Moment | None = None
    until: Moment | None = None
    depth: Literal["items", "auto"] = "items"
    filters: GivenFilters = None
    as_of: Moment | None = None
    read_after: Annotated[int, Field(ge=0)] | None = None
    explain: bool = False
    include_superseded: bool = False
    rerank: bool | Literal["local"] | None = None
    """Whether a language model orders the best hits, or with `local` the cross-encoder; None is the deployment's
    default."""
    sufficiency: Literal["rules", "model"] | None = None
    """Whether a model or rules decide with `depth` `auto` that a layer suffices; None is the deployment's default."""


class ContextSearch(RetrieveRequest, frozen=True):
    """The search for a context: of several projects, the one in which the conversation is held is preferred.

    `retrieve.v1` does not prefer any: its `conversation_id` only picks the mode.
    """

    prefers_project: ClassVar[bool] = True


class RetrieveResult(BaseModel):
    """The result of a retrieve request; hits best first."""

    hits: list[Hit]
    modes: list[str]
    strategy: Strategy
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = Field(default_factory=list)
    diagnostics: dict[str, Any] = Field(default_factory=dict)


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
