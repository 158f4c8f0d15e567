"""Consolidation: triggers, the events of a run, and its result.

A run executes one trigger. Its id is the partition and offset of the trigger's record, so that a redelivered trigger
continues the same run over the same memories.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from schemas.scopes import Scope
from schemas.state.memories import Memory

Operation = Literal[
    "add_item",
    "remove_item",
    "change_item",
    "distil",
    "merge",
    "decay",
    "assign_category",
    "refresh_category",
    "merge_entry",
    "resolve_entry",
    "expire_entry",
]
"""Operations of a run: add, remove or change an item of turns that were understood again, distil several turns into one
memory, merge duplicate items, decay an item's stability, reassign an item's categories, refresh a category's summary,
merge an intention's entry with its item, find one done by what a turn says, or past its own last day."""


class ConsolidationTrigger(BaseModel, extra="ignore", strict=True, frozen=True):
    """`consolidate.v1`: consolidate the memories of a scope in one mode, or in each mode separately."""

    scope: Scope
    mode: Annotated[str, Field(min_length=1)] | None = None


class Distilled(BaseModel, frozen=True, populate_by_name=True):
    """A memory that supersedes several turns: all of them, or it is not written.

    `sources` are the ids and content hashes of the turns when they were distilled.
    """

    schema_: Literal["distilled.v1"] = Field(default="distilled.v1", alias="schema")
    run: str
    memory: Memory
    sources: dict[str, str]


class ItemsMerged(BaseModel, frozen=True, populate_by_name=True):
    """A run's change to an item; it applies while the item's content has this `content_hash`.

    `into` is the older duplicate that supersedes the item, None without one; `stability` is the item's decayed
    stability, None if it is unchanged.
    """

    schema_: Literal["evolved.v1"] = Field(default="evolved.v1", alias="schema")
    run: str
    memory_id: str
    content_hash: str
    into: str | None = None
    stability: float | None = None


class Difference(BaseModel, frozen=True):
    """One change of a run: to a memory, named by its id, or to a category or an entry, by its name."""

    op: Operation
    memory_id: str | None = Field(default=None, exclude_if=lambda memory_id: memory_id is None)
    name: str | None = Field(default=None, exclude_if=lambda name: name is None)
    before: str | None = None
    after: str | None = None


class ModeCounts(BaseModel):
    """Result of a run in one mode. `turns` counts the turns considered, `waiting` those without a vector yet."""

    turns: int = 0
    waiting: int = 0
    clusters: int = 0
    created: int = 0
    superseded: int = 0
    merged: int = 0
    decayed: int = 0
    by_model: int = 0
    left: int = 0
    """Clusters left for the next run."""


class RefreshCounts(BaseModel, frozen=True):
    """Turns that a run had understood again, without a valid answer (`failed`) and left (`remaining`), and the cost."""

    processed: int
    failed: int
    remaining: int
    calls: int
    tokens: int


class Consolidated(BaseModel, frozen=True, populate_by_name=True):
    """The result of a run: its reply, and its last record on its topic."""

    schema_: Literal["consolidated.v1"] = Field(default="consolidated.v1", alias="schema")
    run: str
    scope: dict[str, str]
    at: datetime
    created: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    modes: dict[str, ModeCounts] = Field(default_factory=dict)
    refreshed: RefreshCounts | None = Field(default=None, exclude_if=lambda refreshed: refreshed is None)
    diff: tuple[Difference, ...] = ()


class StoredRun(BaseModel, frozen=True):
    """A run over the turns of its partition before the offset `until`.

    `left`, `adjusted` and `has_ended` are set at its end. `left` has by mode the digest of the turns among which it
    found nothing more to consolidate.
    """

    run: str
    until: int
    at: datetime
    left: dict[str, str] = Field(default_factory=dict)
    has_ended: bool = False
    adjusted: int = 0
    """The offset before which all turns were read for the intention."""


class RunHistory(BaseModel, frozen=True):
    """The last runs of one scope, oldest first: a value of the table `consolidations`."""

    runs: tuple[StoredRun, ...] = ()

    def find(self, run: str) -> StoredRun | None:
        return next((stored for stored in self.runs if stored.run == run), None)

    def has_looked_at(self, mode: str, digest: str) -> bool:
        """True if a run found nothing more to consolidate among the mode's turns with this digest."""
        return any(stored.left.get(mode) == digest for stored in self.runs)
