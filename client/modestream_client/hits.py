"""Models of memories in results: hits, list items, whole records."""

from typing import Any

from pydantic import BaseModel, Field

from modestream_client.vocabulary import (
    Decay,
    EmbeddingErrorCode,
    EmbeddingStatus,
    InteractionMode,
    ItemKind,
    MemoryType,
    ModeSource,
    Role,
)


class Evidence(BaseModel, frozen=True):
    """A span of a turn's text, or of one of its resources; offsets count Unicode code points."""

    turn_id: str
    start: int
    end: int
    resource: str | None = Field(default=None, exclude_if=lambda resource: resource is None)
    page: int | None = Field(default=None, exclude_if=lambda page: page is None)
    """The page, slide or sheet of the resource, from 1."""
    start_s: float | None = Field(default=None, exclude_if=lambda second: second is None)
    end_s: float | None = Field(default=None, exclude_if=lambda second: second is None)
    """The seconds of sound or video that the span was said in."""
    memory_id: str | None = Field(default=None, exclude_if=lambda memory_id: memory_id is None)
    """The turn's memory, if it differs from the memory with this evidence."""


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
    """Fields of a memory in every answer. A distilled one has no turn, conversation, role or speaker."""

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
    accepted_at: str = ""
    """When it was first accepted: the timestamp of its first record."""
    evidence: tuple[Evidence, ...]
    version: int


class MemoryFields(ShownMemory):
    """Fields of a memory in hits and lists. No language model of the deployment reads a `private` one."""

    embedding_status: EmbeddingStatus
    edited_since: bool = Field(default=False, exclude_if=lambda edited: not edited)
    """True if its text is later than the requested time."""
    private: bool = Field(default=False, exclude_if=lambda private: not private)
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Metadata of the turn's latest record; empty for a memory that is not a turn."""


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


class ListedMemory(MemoryFields):
    """One memory of a list. `importance` is the turn's own, `superseded_by` a memory id.

    `resources` are the turn's attachments, as published; absent without any. No search finds a memory that is not
    `searchable`.
    """

    importance: float | None
    resources: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=lambda resources: not resources)
    superseded_by: str | None
    searchable: bool = Field(default=True, exclude_if=lambda searchable: searchable)


class ListedConversation(BaseModel):
    """A conversation by its matching turns: number, times of the first and the last, and number by mode.

    `title` is that of an import, else the first words of a user, whichever turns match; None if all turns are hidden.
    """

    conversation_id: str
    title: str | None = None
    scope: dict[str, str]
    turns: int
    first: str
    last: str
    speakers: list[str]
    modes: dict[str, int]


class ListedProject(BaseModel):
    """A project by its matching memories; `conversations` counts those with a matching turn."""

    scope: dict[str, str]
    memories: int
    conversations: int
    first: str
    last: str
    modes: dict[str, int]


class ListFacets(BaseModel, frozen=True):
    """How many of the listed memories have each value: the twenty most frequent values of each filter."""

    mode: dict[str, int]
    type: dict[str, int]
    speaker: dict[str, int]
    conversation: dict[str, int]


class ListResult(BaseModel):
    """One page. `next` is the cursor of the next page, None at the end; `total` counts all matches.

    `facets` comes with the first page of memories where it was asked for.
    """

    items: list[ListedMemory] | list[ListedConversation] | list[ListedProject]
    next: str | None
    total: int
    facets: ListFacets | None = Field(default=None, exclude_if=lambda facets: facets is None)


class VectorState(BaseModel, frozen=True):
    """The state of a memory's vector; `error` says why it is missing, `error_code` in one word."""

    status: EmbeddingStatus
    embedded_at: str | None = None
    error: str | None = None
    error_code: EmbeddingErrorCode | None = None
    error_at: str | None = None


class ShownVersion(BaseModel, frozen=True):
    """A text that the memory has had, by its hash."""

    version: int
    current: bool
    text_hash: str
    first_seen: str


class WholeMemory(ShownMemory, extra="allow"):
    """One memory with evidence, versions and the results of understanding. A distilled one has no turn and no role.

    `items` are the ids of the turn's items. No search finds it unless it is `searchable`, and no language model of the
    service reads a `private` one: by `own_visibility`, or by its mode. Other fields are kept in `model_extra`.
    """

    importance: float | None = None
    metadata: dict[str, Any] = Field({})
    resources: tuple[dict[str, Any], ...] = ()
    entities: tuple[str, ...] = ()
    decay: Decay | None = None
    embedding: VectorState
    superseded_by: str | None = None
    items: tuple[str, ...] = ()
    interaction_mode: InteractionMode | None = None
    interaction_confidence: float | None = None
    searchable: bool = True
    private: bool = False
    own_visibility: dict[str, bool] = Field({})
    versions: tuple[ShownVersion, ...] = ()
