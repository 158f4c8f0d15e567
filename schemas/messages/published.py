"""Records of topics that others read: contexts and ratings, receipts, counts of boundaries; without any text."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field

from schemas.scopes import PROJECT_FIELD

ContextKind = Literal["assemble", "answer"]

ScopeSelection = dict[str, str | list[str]]
"""The selector of a read, as it was permitted: per field one value, several, or `*`."""


class LoggedReference(BaseModel, frozen=True):
    """A memory of a context. `offset` is that of the record with its text on the topic of turns; None if derived."""

    memory_id: str
    version: int
    section: str
    score: float | None = None
    tokens: int
    offset: int | None = Field(default=None, exclude_if=lambda offset: offset is None)


class LoggedContext(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """`context.v1`, one record of the topic `contexts`."""

    schema_: Literal["context.v1"] = Field(default="context.v1", alias="schema")
    context_id: str
    scope: ScopeSelection
    at: datetime
    kind: ContextKind
    mode: str | list[str]
    interaction_mode: InteractionMode
    revision: int
    principal: str | None = None
    query_sha256: str
    references: tuple[LoggedReference, ...] = ()
    dropped: tuple[str, ...] = ()
    tokens: dict[str, int] = Field(default_factory=dict)

    def is_within(self, projects: tuple[str, ...] | None) -> bool:
        """True if it was made of these projects alone; None is all of them."""
        selected = self.scope[PROJECT_FIELD]
        return projects is None or {*([selected] if isinstance(selected, str) else selected)} <= {*projects}


class Rating(BaseModel, frozen=True, populate_by_name=True):
    """`rating.v1`, on the topic `contexts`: which memories of a context were of use, and which were not."""

    schema_: Literal["rating.v1"] = Field(default="rating.v1", alias="schema")
    context_id: str
    rating_id: str
    scope: ScopeSelection
    at: datetime
    mode: str | list[str]
    revision: int
    principal: str | None = None
    useful: tuple[str, ...] = ()
    not_useful: tuple[str, ...] = ()


def selection_of(fields: Mapping[str, tuple[str, ...] | None]) -> ScopeSelection:
    """Return a selector's fields as records have them."""
    return {
        name: "*" if values is None else values[0] if len(values) == 1 else list(values)
        for name, values in fields.items()
    }


def query_digest(query: str) -> str:
    return hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()


ReceiptState = Literal["hidden", "erased"]
"""`hidden`: no read finds it any more; `erased`: nothing of it is left where that is looked at."""

LOOKED_AT = ("tables", "lexical", "vectors", "archive", "log_segments")
"""Where is looked before a receipt says `erased`."""


class RecordPlace(BaseModel, frozen=True):
    """The record of the command that asked."""

    topic: str
    partition: int
    offset: int


class Receipt(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """`receipt.v1`, one record of the topic `receipts`, and without `schema` and `state` the field of a result.

    `scope_digest` is the SHA-256 of `salt`, `/` and the canonical key, as hex: it can be checked by the user's key.
    `looked_at` says of each place how many memories were looked for and not found; null: nothing of it is erased by a
    time there.
    """

    schema_: Literal["receipt.v1"] = Field(default="receipt.v1", alias="schema")
    receipt_id: str
    state: ReceiptState = "hidden"
    salt: str
    scope_digest: str
    requested_at: datetime
    forgotten: int
    log: RecordPlace
    erase_by: datetime | None = None
    erased_at: datetime | None = None
    looked_at: Mapping[str, int | None] | None = None


class Asked(BaseModel, frozen=True):
    """Which record asked to forget, and when."""

    place: RecordPlace
    timestamp_ms: int


class ReceiptRow(BaseModel, frozen=True):
    """A row of the table `receipts`: a receipt, or a page of the memories that it is about.

    `turn_ids` and `derived_ids` are those of a page. Turns before `turns_before` were there when it was asked for.
    `log_ends` are the ends of the logs that had texts of it, once they are known. `at` is the time of the row.
    """

    receipt: Receipt | None = None
    turns_before: int | None = None
    log_ends: Mapping[str, int] | None = None
    at: datetime | None = None
    turn_ids: tuple[str, ...] = ()
    derived_ids: tuple[str, ...] = ()


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
