"""Consolidation: what triggers it, what it tells the keeper of memories, and what it says it has changed.

A run is one trigger that is carried out. Its id is the partition and the offset of its record, so that one that was
cut off and comes again is the same run, over the same memories.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.memories import Memory
from schemas.scopes import Scope

Operation = Literal["distil", "merge", "decay", "assign_category", "refresh_category", "merge_entry"]
"""What a run may do: make one memory of several turns, unite two items that say the same, let an item fade, put an item
under other categories, make a category's summary anew, and merge an entry of an intention with its item."""


class ConsolidationTrigger(BaseModel):
    """`consolidate.v1`: consolidate the memories of a scope in one mode, or in each mode by itself (CONTRACT §6)."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    scope: Scope
    mode: Annotated[str, Field(min_length=1)] | None = None


class Distilled(BaseModel):
    """A memory that is to stand for several turns: for all of them, or it is not made.

    `sources` are the ids of the turns, with the hash of each one's content as it was distilled.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["distilled.v1"] = Field(default="distilled.v1", alias="schema")
    run: str
    memory: Memory
    sources: dict[str, str]


class ItemsMerged(BaseModel):
    """What becomes of an item in a run, as far as its content is still the one with `content_hash`.

    `into` is the older item that says the same and stands for it from now on, None where it stays; `stability` is how
    likely it still holds, None where that stays.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["evolved.v1"] = Field(default="evolved.v1", alias="schema")
    run: str
    memory_id: str
    content_hash: str
    into: str | None = None
    stability: float | None = None


class Difference(BaseModel):
    """One thing that a run has changed: of a memory by its id, or of a category or an entry by its name."""

    model_config = ConfigDict(frozen=True)

    op: Operation
    memory_id: str | None = Field(default=None, exclude_if=lambda memory_id: memory_id is None)
    name: str | None = Field(default=None, exclude_if=lambda name: name is None)
    before: str | None = None
    after: str | None = None


class ModeCounts(BaseModel):
    """What a run did in one mode: of so many turns, `waiting` of them without a vector yet."""

    turns: int = 0
    waiting: int = 0
    clusters: int = 0
    created: int = 0
    superseded: int = 0
    merged: int = 0
    decayed: int = 0
    by_model: int = 0
    left: int = 0
    """Clusters that are left for the next run."""


class Consolidated(BaseModel):
    """What a run has done, all of it: its reply, and the last record of it on its topic."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["consolidated.v1"] = Field(default="consolidated.v1", alias="schema")
    run: str
    scope: dict[str, str]
    at: datetime
    created: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    modes: dict[str, ModeCounts] = Field(default_factory=dict)
    diff: tuple[Difference, ...] = ()


class StoredRun(BaseModel):
    """A run by its id, and what it is about: turns of its partition before the offset `until`.

    `left` is the digest of the turns of each mode among which it found nothing more, once it came to its end.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    until: int
    at: datetime
    left: dict[str, str] = Field(default_factory=dict)


class RunHistory(BaseModel):
    """The last runs of one scope, oldest first: a value of the table `consolidations`."""

    model_config = ConfigDict(frozen=True)

    runs: tuple[StoredRun, ...] = ()

    def find(self, run: str) -> StoredRun | None:
        """The run of that id."""
        return next((one for one in self.runs if one.run == run), None)

    def has_looked_at(self, mode: str, digest: str) -> bool:
        """Whether a run has found nothing more among the turns of a mode with this digest."""
        return any(one.left.get(mode) == digest for one in self.runs)
