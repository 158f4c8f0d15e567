"""The record of a memory: the value of the `memories` table, and the base of `get_memory`'s reply."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from modestream_client.hits import Evidence
from modestream_client.records import canonical
from modestream_client.vocabulary import (
    Decay,
    EmbeddingErrorCode,
    EmbeddingStatus,
    ItemKind,
    MemoryType,
    ModeSource,
    ResourceStatus,
    Role,
)
from pydantic import BaseModel, Field

from schemas.moments import milliseconds_of
from schemas.state.files import ReadFailure
from schemas.state.interaction import Interaction
from schemas.state.modes import EVERYWHERE, Visibility, is_everywhere
from schemas.state.understanding import IntentionUpdate

ID_NAMESPACE = uuid.UUID("4d1f2a3e-5f0b-5c1e-9a41-6d6f64657374")
"""The UUIDv5 namespace of all ids. Changing it changes every id ever issued."""


def derive_memory_id(scope: Mapping[str, str], conversation_id: str, turn_id: str) -> str:
    """Return the memory id of a turn: UUIDv5 of its scope, conversation and turn id."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["turn", dict(scope), conversation_id, turn_id])))


def hash_texts(texts: Iterable[str]) -> str:
    """Hash texts in order: 128 bits in hexadecimal."""
    return hashlib.sha256(canonical(list(texts)).encode()).hexdigest()[:32]


UnderstandingStatus = Literal["rules", "pending", "model"]
Origin = Literal["said", "extracted", "distilled"]
"""A turn itself; an item extracted from turns and shown in their hits; a summary that supersedes several turns."""


class PublishedResource(BaseModel, frozen=True, strict=True):
    """An attachment of a turn; `text` is its caption or transcript. The bytes of one without it may be read."""

    uri: str = Field(min_length=1, max_length=2048)
    media_type: str | None = None
    sha256: str | None = None
    text: str | None = Field(default=None, max_length=32768)
    name: str | None = Field(default=None, max_length=255, exclude_if=lambda name: name is None)
    """The name of its file."""
    bytes: int | None = Field(default=None, ge=0, exclude_if=lambda size: size is None)


class Resource(PublishedResource, frozen=True, strict=True):
    """An attachment as the turn's record has it, with what became of reading it; no `status`: it is not read.

    `parts` is the number of its document memories: of a pending one that many may be there.
    """

    status: ResourceStatus | None = Field(default=None, exclude_if=lambda status: status is None)
    code: ReadFailure | None = Field(default=None, exclude_if=lambda code: code is None)
    error: str | None = Field(default=None, exclude_if=lambda error: error is None)
    reader: str | None = Field(default=None, exclude_if=lambda reader: reader is None)
    characters: int | None = Field(default=None, exclude_if=lambda characters: characters is None)
    pages: int | None = Field(default=None, exclude_if=lambda pages: pages is None)
    seconds: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    parts: int = Field(default=0, exclude_if=lambda parts: parts == 0)

    def published(self) -> PublishedResource:
        return PublishedResource(**{name: getattr(self, name) for name in PublishedResource.model_fields})


class VectorLocation(BaseModel, frozen=True):
    """The collection that holds a vector: of a mode, and of the space with this fingerprint digest."""

    mode: str
    space: str


class Embedding(BaseModel, frozen=True):
    """The state of a memory's vector. `place` is the location of its last vector known to be in the index.

    Unless the status is `ready`, that vector may belong to another text or mode, and ranking ignores it. `pending` with
    an `error`, of the kind `error_code` since `error_at`, waits for the mode's model; `not_applicable` is the status of
    unsearchable memories. `held` are the digests of other spaces of the memory's mode that have a vector of the current
    text: the former embedder's, which ranks questions until all vectors of the present one are ready.
    """

    status: EmbeddingStatus = "pending"
    place: VectorLocation | None = None
    content_hash: str | None = None
    embedded_at: datetime | None = None
    error: str | None = None
    error_code: EmbeddingErrorCode | None = Field(default=None, exclude_if=lambda code: code is None)
    error_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    held: tuple[str, ...] = Field(default=(), exclude_if=lambda held: not held)

    @property
    def space(self) -> str | None:
        """The digest of the space that holds the current vector; None without one."""
        return self.place.space if self.place and self.status == "ready" else None

    @property
    def searchable_beside(self) -> tuple[str, ...]:
        """The other spaces in which a search finds the memory: empty for a text that the present model can't embed."""
        return () if self.status == "failed" else self.held


class Refreshed(BaseModel, frozen=True):
    """Result of understanding a turn again: ids of items created, removed, or with changed evidence.

    `job_id` and `at` are those of the event. `tokens` is the cost of the language model's answer; without `is_answered`
    it was not valid, and nothing has changed.
    """

    job_id: str
    at: datetime
    tokens: int = 0
    is_answered: bool = True
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class TurnUnderstanding(BaseModel, frozen=True):
    """The understanding of a turn's text with this `text_hash`.

    `pending`: rules have answered, a language model has not yet. `interaction` is the interaction mode of the turn
    alone, before smoothing by earlier turns; `is_corrected`: a user has set it. `model` and `prompt` name the profile
    and the prompt version of the answer. `times` are the ISO dates that the text mentions. `aims` is a model's answer
    on how the turn changes the user's intention. `revision` is that of the pipelines with which it was understood, 0 of
    the rules. `tried` is the version of a later prompt without a valid answer. `refreshed` has the changes of the last
    job that had the turn understood again.
    """

    status: UnderstandingStatus = "rules"
    text_hash: str = ""
    topic: str | None = None
    intent: str | None = None
    operation: str | None = None
    times: tuple[str, ...] = ()
    interaction: Interaction | None = None
    is_corrected: bool = Field(default=False, exclude_if=lambda is_corrected: not is_corrected)
    model: str | None = None
    prompt: str | None = None
    aims: IntentionUpdate | None = Field(default=None, exclude_if=lambda aims: aims is None)
    revision: int = Field(default=0, exclude_if=lambda revision: revision == 0)
    tried: str | None = Field(default=None, exclude_if=lambda tried: tried is None)
    refreshed: Refreshed | None = Field(default=None, exclude_if=lambda refreshed: refreshed is None)


class TextVersion(BaseModel, frozen=True):
    """A text version of a memory, by its hash; a replaced text itself is not stored."""

    text_hash: str
    first_seen: datetime


class CategoryAssignment(BaseModel, frozen=True):
    """A category of an item with its confidence (0..1): by vector similarity (`likeness`) or by a language model."""

    name: str
    confidence: float
    by: Literal["likeness", "model"] = "likeness"


class Support(BaseModel, frozen=True):
    """The contribution of one turn to an item.

    `text_hash`, `occurred_at` and `source` are the turn's; `start` and `end` are the span in its text or resource. The
    latest support gives the item its text. `replaces` names earlier items that a language model found to be outdated by
    this one, each as the id of a turn that states it, a slash, and the item's id without a mode. `may_supersede` is
    False for the words of an assistant or a tool, whose claim supersedes nothing. `mode` is set if a language model put
    the item into another mode than the turn's; `instead_of` is the text of the item that rules extract from the same
    words and that this item replaces. `accepted_at` is the timestamp of the turn's record; None in records of former
    releases. `is_part`: the item is a part of the turn's file (a page, slide or sheet, or a span of seconds) and
    belongs to no other turn.
    """

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
    page: int | None = Field(default=None, exclude_if=lambda page: page is None)
    start_s: float | None = Field(default=None, exclude_if=lambda second: second is None)
    end_s: float | None = Field(default=None, exclude_if=lambda second: second is None)
    confidence: float
    stability: float
    claim: str | None = None
    entities: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    accepted_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    replaces: tuple[str, ...] = Field(default=(), exclude_if=lambda replaces: not replaces)
    may_supersede: bool = Field(default=True, exclude_if=lambda may: may)
    mode: str | None = Field(default=None, exclude_if=lambda mode: mode is None)
    instead_of: str | None = Field(default=None, exclude_if=lambda text: text is None)
    is_part: bool = Field(default=False, exclude_if=lambda is_part: not is_part)


class Item(BaseModel, frozen=True):
    """The fields of an extracted or distilled memory; its turns are the evidence.

    `kind` is None for a document segment and a distilled memory. `confidence` is the probability that the evidence says
    so, `stability` that it is still valid, both 0..1. `claim` names the item's subject: a later item of the same claim
    supersedes it. It was valid from `valid_from`, and until `valid_until` if superseded. `run` is the consolidation
    that made it. `supports` are the contributions of its turns, the latest last. `turn_mode` is the mode of its latest
    turn if it differs from the item's: then no hit of the turn has the item.
    """

    kind: ItemKind | None = None
    confidence: float = 0.5
    stability: float = 0.5
    categories: tuple[CategoryAssignment, ...] = ()
    claim: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    run: str | None = None
    supports: tuple[Support, ...] = ()
    turn_mode: str | None = Field(default=None, exclude_if=lambda mode: mode is None)


class Memory(BaseModel, frozen=True):
    """One memory. Applying the same input twice gives the same record.

    `versions` are the latest different texts in order of first occurrence, after `dropped_versions` earlier ones;
    `version` is the number of all, `current` the index of the current one in `versions`. `source` is the offset of the
    record that created it on the turns topic, which orders turns with equal times; `latest` and `latest_at` are offset
    and timestamp of the record with the current text. `content_hash` is the hash of the embedded text; a vector of
    another hash is outdated.

    A turn has in `items` the ids of the items extracted from it, and `items_apart` if some of them are, or were, in
    another mode than its own; extracted and distilled memories have `item`.
    `first_accepted_at` is the timestamp of its first record where `versions` do not begin with that. `superseded_in` is
    the consolidation run that superseded it, `superseded_at` the time since when; without, it is so at all times.
    `revision` is that of the pipelines that made it.

    `visibility` holds for the memory now: `own_visibility`, limited by that of its mode. An item's own is its turn's.
    """

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
    dropped_versions: int = Field(default=0, exclude_if=lambda dropped: dropped == 0)
    current: int = 0
    content_hash: str
    embedding: Embedding = Embedding()
    reading: TurnUnderstanding = TurnUnderstanding()
    superseded_by: str | None = None
    superseded_in: str | None = None
    superseded_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    first_accepted_at: datetime | None = Field(default=None, exclude_if=lambda at: at is None)
    origin: Origin = "said"
    items: tuple[str, ...] = ()
    items_apart: bool = Field(default=False, exclude_if=lambda apart: not apart)
    item: Item | None = None
    revision: int = Field(default=0, exclude_if=lambda revision: revision == 0)
    visibility: Visibility = Field(default=EVERYWHERE, exclude_if=is_everywhere)
    own_visibility: Visibility = Field(default=EVERYWHERE, exclude_if=is_everywhere)

    @property
    def index_name(self) -> str:
        """The index name that holds it: that of its boundary's turns or items, or of their unsearchable parts."""
        name = item_index_name(self.boundary) if self.origin == "extracted" else self.boundary
        return name if self.visibility.searchable else unsearchable_index_name(name)

    @property
    def accepted_at(self) -> datetime:
        """When it was first accepted: the timestamp of its first record, or of the first turn that states it."""
        return self.first_accepted_at or self.versions[0].first_seen

    def is_superseded(self, as_of: datetime | None = None) -> bool:
        """True if another memory has replaced it, by a time or by now."""
        is_earlier = as_of is not None and self.superseded_at is not None and self.superseded_at > as_of
        return self.superseded_by is not None and not is_earlier

    @property
    def version(self) -> int:
        """The number of different texts that this memory has had."""
        return self.dropped_versions + len(self.versions)

    @property
    def occurred_ms(self) -> int:
        """`occurred_at` in milliseconds since the epoch."""
        return milliseconds_of(self.occurred_at)


ReadMemory = Callable[[str], Memory | None]
"""Return the current record of a memory id; None if it was forgotten."""


class MemoryExcerpt(BaseModel, frozen=True):
    """The fields of a record shown on a map; reading them takes a tenth of the time of a whole record."""

    memory_id: str
    conversation_id: str | None
    # A row leaves out what has its default in `Memory`.
    type: MemoryType = "episodic"
    text: str
    occurred_at: datetime


def item_index_name(boundary: str) -> str:
    """Return the index name of a boundary's items. No boundary has this name, as no scope value is empty."""
    return f"{boundary}//items"


def unsearchable_index_name(index_name: str) -> str:
    """Return the index name of unsearchable memories, which would otherwise be in this index."""
    return f"{index_name}//unsearchable"


def boundary_of(index_name: str) -> str:
    return index_name.partition("//")[0]


def index_names(boundary: str) -> tuple[str, str]:
    """Return the index names that are searched: of a boundary's turns and distilled memories, and of its items."""
    return boundary, item_index_name(boundary)


def turn_index_names(boundary: str) -> tuple[str, str]:
    """Return the index names of all turns and distilled memories: of the searchable ones, and of the others."""
    return boundary, unsearchable_index_name(boundary)


def all_item_index_names(boundary: str) -> tuple[str, str]:
    """Return the index names of all items: of the searchable ones, and of the others."""
    return item_index_name(boundary), unsearchable_index_name(item_index_name(boundary))


def all_index_names(boundary: str) -> tuple[str, ...]:
    """Return the index names of everything that a boundary has, turns before items."""
    return (*turn_index_names(boundary), *all_item_index_names(boundary))


class ClaimEntry(NamedTuple):
    """An item that makes the claim; `occurred_at` and `source` are time and offset of its latest turn.

    That is its latest turn that may supersede others, if any of its turns may.
    """

    occurred_at: datetime
    source: int
    memory_id: str
    may_supersede: bool = True


class Claim(BaseModel, frozen=True):
    """All items of one claim, oldest first; the last one is current."""

    held: tuple[ClaimEntry, ...] = ()
