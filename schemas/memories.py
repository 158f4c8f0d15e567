"""The record of a memory: the value of the `memories` table, and what `get_memory` shows."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.modes import Decay, ModeSource

MemoryType = Literal["episodic", "semantic", "procedural", "document", "state_object", "working"]
EmbeddingStatus = Literal["not_applicable", "pending", "ready", "stale", "failed"]
Role = Literal["user", "assistant", "system", "tool"]


class Evidence(BaseModel):
    """A span of a turn's text, or of one of its resources; offsets count Unicode code points."""

    model_config = ConfigDict(frozen=True)

    turn_id: str
    start: int
    end: int
    resource: str | None = Field(default=None, exclude_if=lambda resource: resource is None)


class Resource(BaseModel):
    """Something that came with a turn; `text` is its caption or transcript."""

    model_config = ConfigDict(frozen=True, strict=True)

    uri: str = Field(min_length=1, max_length=2048)
    media_type: str | None = None
    sha256: str | None = None
    text: str | None = Field(default=None, max_length=32768)


class Embedding(BaseModel):
    """Where the memory's vector stands: `space` is the fingerprint digest of the vector that is in the index."""

    model_config = ConfigDict(frozen=True)

    status: EmbeddingStatus = "pending"
    space: str | None = None
    content_hash: str | None = None
    embedded_at: datetime | None = None
    error: str | None = None


class TextVersion(BaseModel):
    """One of the texts that a memory has had, by its hash: a replaced text itself is not kept."""

    model_config = ConfigDict(frozen=True)

    text_hash: str
    first_seen: datetime


class Memory(BaseModel):
    """One memory. Written by `remember` alone; the same input twice gives the same record.

    `versions` are the different texts seen, in order of first sight; `version` is their number and `current` the
    place of the one that stands. `source` is the offset on the turns topic of the record that made it, the order
    within a conversation where times are equal; `latest` and `latest_at` are offset and timestamp of the record whose
    text stands. `content_hash` is the hash of what is embedded; another makes a vector stale.
    """

    model_config = ConfigDict(frozen=True)

    memory_id: str
    turn_id: str | None
    conversation_id: str | None
    scope: dict[str, str]
    boundary: str
    type: MemoryType = "episodic"
    mode: str
    mode_source: ModeSource
    role: Role | None
    speaker: str | None = None
    text: str
    resources: tuple[Resource, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    occurred_at: datetime
    source: int
    latest: int
    latest_at: datetime
    importance: float | None = None
    entities: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    decay: Decay = "medium"
    versions: tuple[TextVersion, ...]
    current: int = 0
    content_hash: str
    embedding: Embedding = Embedding()
    superseded_by: str | None = None

    @property
    def version(self) -> int:
        """How many different texts this memory has had."""
        return len(self.versions)

    @property
    def occurred_ms(self) -> int:
        """When it was said, in milliseconds since the epoch."""
        return round(self.occurred_at.timestamp() * 1000)
