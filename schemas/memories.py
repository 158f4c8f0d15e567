"""The record of a memory: the value of the `memories` table, and what `get_memory` shows."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.interaction import Interaction
from schemas.modes import Decay, ModeSource

MemoryType = Literal["episodic", "semantic", "procedural", "document", "state_object", "working"]
EmbeddingStatus = Literal["not_applicable", "pending", "ready", "stale", "failed"]
UnderstandingStatus = Literal["rules", "pending", "model"]
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


class Place(BaseModel):
    """Where a vector lies: in the collection of this mode and of the space with this fingerprint digest."""

    model_config = ConfigDict(frozen=True)

    mode: str
    space: str


class Embedding(BaseModel):
    """Where the memory's vector stands. `place` is that of the last vector that the index is known to have.

    While the status is not `ready` that vector is of another text or another mode, and no read uses it. `pending` with
    an `error` waits for the mode's model.
    """

    model_config = ConfigDict(frozen=True)

    status: EmbeddingStatus = "pending"
    place: Place | None = None
    content_hash: str | None = None
    embedded_at: datetime | None = None
    error: str | None = None

    @property
    def space(self) -> str | None:
        """The digest of the space that holds today's vector; None where there is none."""
        return self.place.space if self.place and self.status == "ready" else None


class Reading(BaseModel):
    """What a turn was understood as, of the text with `text_hash`.

    `pending`: the rules have answered, and a language model is still to. `interaction` is what the turn is for as it
    reads by itself, without the turns before it. `model` and `prompt` name the profile and the version of the prompt
    that answered. `times` are dates that the text speaks of, as ISO dates.
    """

    model_config = ConfigDict(frozen=True)

    status: UnderstandingStatus = "rules"
    text_hash: str = ""
    topic: str | None = None
    intent: str | None = None
    operation: str | None = None
    times: tuple[str, ...] = ()
    interaction: Interaction | None = None
    model: str | None = None
    prompt: str | None = None


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
    reading: Reading = Reading()
    superseded_by: str | None = None

    @property
    def version(self) -> int:
        """How many different texts this memory has had."""
        return len(self.versions)

    @property
    def occurred_ms(self) -> int:
        """When it was said, in milliseconds since the epoch."""
        return round(self.occurred_at.timestamp() * 1000)
