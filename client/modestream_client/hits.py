"""A hit: one memory as an answer shows it, with its evidence."""

from pydantic import BaseModel, Field

from modestream_client.vocabulary import EmbeddingStatus, ItemKind, MemoryType, ModeSource, Role


class Evidence(BaseModel, frozen=True):
    """A span of a turn's text, or of one of its resources; offsets count Unicode code points."""

    turn_id: str
    start: int
    end: int
    resource: str | None = Field(default=None, exclude_if=lambda resource: resource is None)
    memory_id: str | None = Field(default=None, exclude_if=lambda memory_id: memory_id is None)
    """The turn's memory, if that is not the memory with this evidence."""


class Passage(BaseModel, frozen=True):
    """A passage of a long turn's text, with its score in 0..1; offsets count Unicode code points."""

    start: int
    end: int
    score: float


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


class ShownMemory(BaseModel):
    """What every answer shows of a memory. A distilled one has no turn, conversation, role or speaker."""

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
    evidence: tuple[Evidence, ...]
    version: int


class MemoryFields(ShownMemory):
    """What hits and lists show of a memory. No language model of the deployment reads a `private` one."""

    embedding_status: EmbeddingStatus
    private: bool = Field(default=False, exclude_if=lambda private: not private)


class Hit(MemoryFields):
    """One memory that matches the query, with its evidence.

    `items` are the turn's items that match the query, best first. The evidence of a distilled memory starts with the
    turn that matches best.
    """

    score: float
    scores: Scores | None = Field(default=None, exclude_if=lambda scores: scores is None)
    contributions: dict[str, float] | None = Field(default=None, exclude_if=lambda contributions: contributions is None)
    """The contribution of each feature group to the log-odds of the score; they sum to it."""
    items: tuple[ItemInside, ...] = Field(default=(), exclude_if=lambda items: not items)
    passages: tuple[Passage, ...] = Field(default=(), exclude_if=lambda passages: not passages)
    """The passages of a long turn that match the query best, best first."""
