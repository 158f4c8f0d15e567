"""The record of a memory: the value of the `memories` table, and what `get_memory` shows."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.aims import IntentionUpdate
from schemas.interaction import Interaction
from schemas.modes import Decay, ModeSource
from schemas.moments import milliseconds_of

MemoryType = Literal["episodic", "semantic", "procedural", "document", "state_object", "working"]
EmbeddingStatus = Literal["not_applicable", "pending", "ready", "stale", "failed"]
UnderstandingStatus = Literal["rules", "pending", "model"]
Role = Literal["user", "assistant", "system", "tool"]

Origin = Literal["said", "extracted", "distilled"]
"""Where a memory comes from: it is a turn; was found in turns, and is shown inside them; stands for several turns."""

ItemKind = Literal[
    "fact",
    "preference",
    "decision",
    "constraint",
    "correction",
    "procedure",
    "open_question",
    "error",
    "safety",
    "goal",
]


class Evidence(BaseModel):
    """A span of a turn's text, or of one of its resources; offsets count Unicode code points."""

    model_config = ConfigDict(frozen=True)

    turn_id: str
    start: int
    end: int
    resource: str | None = Field(default=None, exclude_if=lambda resource: resource is None)
    memory_id: str | None = Field(default=None, exclude_if=lambda memory_id: memory_id is None)
    """The memory that the turn is, where that is not the memory that has this evidence."""


class Resource(BaseModel):
    """Something that came with a turn; `text` is its caption or transcript."""

    model_config = ConfigDict(frozen=True, strict=True)

    uri: str = Field(min_length=1, max_length=2048)
    media_type: str | None = None
    sha256: str | None = None
    text: str | None = Field(default=None, max_length=32768)


class VectorLocation(BaseModel):
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
    place: VectorLocation | None = None
    content_hash: str | None = None
    embedded_at: datetime | None = None
    error: str | None = None

    @property
    def space(self) -> str | None:
        """The digest of the space that holds today's vector; None where there is none."""
        return self.place.space if self.place and self.status == "ready" else None


class TurnUnderstanding(BaseModel):
    """What a turn was understood as, of the text with `text_hash`.

    `pending`: the rules have answered, and a language model is still to. `interaction` is what the turn is for as it
    reads by itself, without the turns before it. `model` and `prompt` name the profile and the version of the prompt
    that answered. `times` are dates that the text speaks of, as ISO dates. `aims` is what a model said that the turn
    changes in what its user is after.
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
    aims: IntentionUpdate | None = Field(default=None, exclude_if=lambda aims: aims is None)


class TextVersion(BaseModel):
    """One of the texts that a memory has had, by its hash: a replaced text itself is not kept."""

    model_config = ConfigDict(frozen=True)

    text_hash: str
    first_seen: datetime


class CategoryAssignment(BaseModel):
    """A category that an item belongs to, and how surely (0..1): by the likeness of vectors, or as a model said."""

    model_config = ConfigDict(frozen=True)

    name: str
    confidence: float
    by: Literal["likeness", "model"] = "likeness"


class Support(BaseModel):
    """What one turn gives to an item: where it says so, how surely, and of what.

    `text_hash` is that of the turn's text that says it. `occurred_at` and `source` are those of the turn: the latest
    support gives the item its words.
    """

    model_config = ConfigDict(frozen=True)

    memory_id: str
    turn_id: str
    text_hash: str
    occurred_at: datetime
    source: int
    type: MemoryType
    kind: ItemKind | None
    text: str
    start: int
    end: int
    resource: str | None = None
    confidence: float
    stability: float
    claim: str | None = None
    entities: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


class Item(BaseModel):
    """What is known of a memory that was found in turns or distilled from them; the turns are its evidence.

    `kind` is None for a segment of a document and for what was distilled. `confidence` says how surely the evidence
    says so, `stability` how likely it still holds, both 0..1. `claim` names what an item is about, so that one that
    says otherwise of the same takes its place. It held from `valid_from`, and until `valid_until` where another has
    taken its place. `run` is the consolidation that made it. `supports` is all that turns give to it, the latest last.
    """

    model_config = ConfigDict(frozen=True)

    kind: ItemKind | None = None
    confidence: float = 0.5
    stability: float = 0.5
    categories: tuple[CategoryAssignment, ...] = ()
    claim: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    run: str | None = None
    supports: tuple[Support, ...] = ()


class Memory(BaseModel):
    """One memory. Written by `remember` alone; the same input twice gives the same record.

    `versions` are the different texts seen, in order of first sight; `version` is their number and `current` the
    place of the one that stands. `source` is the offset on the turns topic of the record that made it, the order
    within a conversation where times are equal; `latest` and `latest_at` are offset and timestamp of the record whose
    text stands. `content_hash` is the hash of what is embedded; another makes a vector stale.

    A turn has in `items` the ids of those that were found in it; they have `item`, as what was distilled has.
    `superseded_in` is the consolidation that gave it its successor.
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
    reading: TurnUnderstanding = TurnUnderstanding()
    superseded_by: str | None = None
    superseded_in: str | None = None
    origin: Origin = "said"
    items: tuple[str, ...] = ()
    item: Item | None = None

    @property
    def index_name(self) -> str:
        """Which memories it is searched among, and compared with: the turns of its boundary, or the items there."""
        return item_index_name(self.boundary) if self.origin == "extracted" else self.boundary

    @property
    def version(self) -> int:
        """How many different texts this memory has had."""
        return len(self.versions)

    @property
    def occurred_ms(self) -> int:
        """When it was said, in milliseconds since the epoch."""
        return milliseconds_of(self.occurred_at)


def item_index_name(boundary: str) -> str:
    """The name under which a boundary's items are indexed; no boundary is called so, as no scope value is empty."""
    return f"{boundary}//items"


def index_names(boundary: str) -> tuple[str, str]:
    """Where all memories of a boundary are indexed: its turns with what was distilled from them, and its items."""
    return boundary, item_index_name(boundary)
