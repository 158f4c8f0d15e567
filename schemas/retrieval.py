"""Retrieve requests and what they are answered with (CONTRACT §5)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.memories import EmbeddingStatus, Evidence, ItemKind, MemoryType, Role
from schemas.modes import ModeSource
from schemas.moments import Moment
from schemas.scopes import Selector

MAX_QUERY_LENGTH = 32768
"""Characters of a question: as long as a turn may be."""

Strategy = Literal["hybrid", "lexical", "cross_mode"]


class RetrieveRequest(BaseModel):
    """`retrieve.v1`."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    scope: Selector
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    mode: str | list[str] | None = None
    conversation_id: str | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    types: list[MemoryType] | None = None
    since: Moment | None = None
    until: Moment | None = None
    depth: Literal["items", "auto"] = "items"
    read_after: Annotated[int, Field(ge=0)] | None = None
    explain: bool = False
    include_superseded: bool = False


class Scores(BaseModel):
    """The signals of one hit, each in 0..1."""

    model_config = ConfigDict(frozen=True)

    dense: float = 0.0
    late: float = 0.0
    lexical: float = 0.0
    neighbours: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    entity: float = 0.0
    speaker: float = 0.0


class ItemInside(BaseModel):
    """An item that was found in a turn, shown in that turn's hit. `score` is the share of the question it covers."""

    model_config = ConfigDict(frozen=True)

    memory_id: str
    type: MemoryType
    kind: ItemKind | None
    text: str
    score: float


class Hit(BaseModel):
    """One memory that answers, with where it comes from.

    `items` are what was found in the turn and matches the question, best first. The evidence of what was distilled from
    several turns has the one that answers best first.
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
    """What each group of signals added to the log-odds of the score, or took; they sum to them."""
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
