"""`boundary.v1`: the counts of one boundary, on the topic `boundaries` (docs/contract.md)."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field


class BoundaryMode(BaseModel, frozen=True):
    """A mode: its memories in all projects, and its embedder; None for a mode that is no longer declared."""

    memories: int = 0
    embedder: str | None = None


class EmbeddingCounts(BaseModel, frozen=True):
    """Memories by the state of their vectors; `not_applicable`, of unsearchable ones, is left out if 0."""

    ready: int = 0
    pending: int = 0
    stale: int = 0
    failed: int = 0
    not_applicable: int = Field(default=0, exclude_if=lambda count: count == 0)


class Boundary(BaseModel, frozen=True, populate_by_name=True):
    """A boundary with its counts.

    `memories` are turns and distilled memories that nothing supersedes; projects, conversations and `embedding` are
    those of these memories, `first` and `last` their earliest and latest times, None without any. `modes` has the
    declared ones, in any project, and those with memories. `corrections` counts memories that a command has moved to
    another mode.
    """

    schema_: Literal["boundary.v1"] = Field(default="boundary.v1", alias="schema")
    boundary: str
    scope: dict[str, str]
    projects: int = 0
    conversations: int = 0
    memories: int = 0
    modes: dict[str, BoundaryMode] = Field(default_factory=dict)
    embedding: EmbeddingCounts = EmbeddingCounts()
    corrections: int = 0
    first: datetime | None = None
    last: datetime | None = None
