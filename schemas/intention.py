"""What somebody is after in a scope: goals, constraints, blocking errors and decisions, each with where it was said.

It is the value of the table `intentions`, and what `get_intention` and retrieval show of it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemas.memories import Evidence

IntentionPart = Literal["goals", "constraints", "blocking_errors", "decisions"]

INTENTION_PARTS: tuple[IntentionPart, ...] = ("goals", "constraints", "blocking_errors", "decisions")
"""The lists of an intention, in the order in which they are shown."""

EntrySource = Literal["said", "model", "set"]
"""An item that was found in a turn, what a language model said of a turn, or the command `set_intention`."""


class IntentionEntry(BaseModel):
    """One thing that somebody is after, or that stands in the way.

    `evidence` names the turns that say so by their memories, none where it was `set`; `item_id` the item behind it.
    `conversation_id` and `offset` are those of the turn, `offset` its place on the turns topic; of what was set it is
    the place of the command. `text_hash` is that of the turn's text: a turn that says something else by now is no
    evidence. `resolved_by` is the turn (its memory id) that says it is done,
    and `resolved_at` when it was said; `advanced_by` are those that speak of a
    part of it. `categories` are those of the item.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    source: EntrySource
    at: datetime
    offset: int
    evidence: tuple[Evidence, ...] = ()
    item_id: str | None = None
    conversation_id: str | None = None
    text_hash: str | None = None
    resolved_by: str | None = None
    resolved_at: datetime | None = None
    advanced_by: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def state(self) -> Literal["open", "done"]:
        """Whether it still stands."""
        return "open" if self.resolved_by is None else "done"

    @property
    def done(self) -> bool:
        """Whether a turn says that it is done."""
        return self.resolved_by is not None

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories of the turns that say so, in the order of the evidence, each once."""
        found = (one.memory_id for one in self.evidence)
        return tuple(dict.fromkeys(memory_id for memory_id in found if memory_id is not None))


class ResolutionSignal(BaseModel):
    """A turn says that something is done, or with `works` that it works again.

    Kept, as what it ends may still come, or is open again when this turn is forgotten.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    source: Literal["said", "model"]
    works: bool = False
    at: datetime
    offset: int
    memory_id: str
    text_hash: str
    conversation_id: str | None = None


class Intention(BaseModel):
    """What somebody is after in a scope, oldest first. `version` counts the changes.

    In the table every turn that says something has an entry of its own; what is shown has one entry with the evidence
    of all of them, and no `signs`.
    """

    model_config = ConfigDict(frozen=True)

    version: int = 0
    goals: tuple[IntentionEntry, ...] = ()
    constraints: tuple[IntentionEntry, ...] = ()
    blocking_errors: tuple[IntentionEntry, ...] = ()
    decisions: tuple[IntentionEntry, ...] = ()
    signs: tuple[ResolutionSignal, ...] = ()
    set_at: int = -1
    """The place on its topic of the last `set_intention` that was carried out."""

    def entries(self) -> Iterator[tuple[IntentionPart, IntentionEntry]]:
        """Every entry with its list."""
        for part in INTENTION_PARTS:
            for entry in self.of(part):
                yield part, entry

    def of(self, part: IntentionPart) -> tuple[IntentionEntry, ...]:
        """The entries of a list."""
        found: tuple[IntentionEntry, ...] = getattr(self, part)
        return found

    def open_entries(self, part: IntentionPart) -> tuple[IntentionEntry, ...]:
        """The entries of a list that still stand."""
        return tuple(entry for entry in self.of(part) if entry.resolved_by is None)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of what still stands, each once, in the order of the entries."""
        names = (name for _, entry in self.entries() if entry.resolved_by is None for name in entry.categories)
        return tuple(dict.fromkeys(names))
