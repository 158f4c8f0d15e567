"""Retrieve requests and results (docs/contract.md)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from schemas.moments import Moment
from schemas.scopes import Selector
from schemas.state.memories import EmbeddingStatus, Evidence, ItemKind, MemoryType, Role
from schemas.state.modes import ModeSource

MAX_QUERY_LENGTH = 32768
"""Characters of a query: the same limit as a turn's content."""

Strategy = Literal["hybrid", "lexical", "cross_mode"]


class RetrieveRequest(BaseModel, extra="ignore", strict=True, frozen=True):
    """`retrieve.v1`."""

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    mode: str | list[str] | None = None
    conversation_id: str | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    min_score: Annotated[float, Field(ge=0, le=1)] = 0.0
    types: list[MemoryType] | None = None
    since: Moment | None = None
    until: Moment | None = None
    depth: Literal["items", "auto"] = "items"
    read_after: Annotated[int, Field(ge=0)] | None = None
    explain: bool = False
    include_superseded: bool = False


class Scores(BaseModel, frozen=True):
    """The features of one hit, each in 0..1."""

    dense: float = 0.0
    late: float = 0.0
    lexical: float = 0.0
    neighbours: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    entity: float = 0.0
    speaker: float = 0.0


class ItemInside(BaseModel, frozen=True):
    """An item extracted from a turn, shown in the turn's hit. `score` is the share of the query that it covers."""

    memory_id: str
    type: MemoryType
    kind: ItemKind | None
    text: str
    score: float


class Hit(BaseModel):
    """One memory that matches the query, with its evidence.

    `items` are the turn's items that match the query, best first. The evidence of a distilled memory starts with the
    turn that matches best.
    """

    memory_id: str
    turn_id: str | None
    conversation_id: str | None
    scope: dict[str, str]
    type: MemoryType
    mode: str
    mode_source: ModeSource
    role: Role | None
    speaker: str | None
    text: str
    occurred_at: str
    score: float
    scores: Scores | None = Field(default=None, exclude_if=lambda scores: scores is None)
    contributions: dict[str, float] | None = Field(default=None, exclude_if=lambda contributions: contributions is None)
    """The contribution of each feature group to the log-odds of the score; they sum to it."""
    evidence: tuple[Evidence, ...]
    version: int
    embedding_status: EmbeddingStatus
    items: tuple[ItemInside, ...] = Field(default=(), exclude_if=lambda items: not items)


class RetrieveResult(BaseModel):
    """The result of a retrieve request; hits best first."""

    hits: list[Hit]
    modes: list[str]
    strategy: Strategy
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = Field(default_factory=list)
    diagnostics: dict[str, Any] = Field(default_factory=dict)
