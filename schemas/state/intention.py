"""Intentions: a user's goals, constraints, blocking errors and decisions in a scope, with their evidence.

`Intention` is the value of the table `intentions`, and its form in `get_intention` and retrieval.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from modestream_client.hits import Evidence
from pydantic import BaseModel

IntentionPart = Literal["goals", "constraints", "blocking_errors", "decisions"]

INTENTION_PARTS: tuple[IntentionPart, ...] = ("goals", "constraints", "blocking_errors", "decisions")
"""The lists of an intention, in display order."""

SETTABLE_PARTS: tuple[IntentionPart, ...] = ("goals", "constraints")
"""The lists that `set_intention` replaces; an intention of the whole user has no others."""

EntrySource = Literal["said", "model", "set"]
"""An item found in a turn, a language model's answer on a turn, or the command `set_intention`."""


class IntentionEntry(BaseModel, frozen=True):
    """One goal, constraint, blocking error or decision.

    `evidence` names the turns that say so, empty if it was `set`; `item_id` is the item behind it. `conversation_id`,
    `text_hash` and `offset` are those of the turn; an edited turn with another hash is no evidence. For a `set` entry
    `offset` is that of the command. `resolved_by` is the memory id of the turn that reports it done, `resolved_at` that
    turn's time; `advanced_by` are the turns that report a part of it done. `categories` are those of the item.
    `expired_at` is the time of the consolidation that found its own last day past.
    """

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
    expired_at: datetime | None = None
    advanced_by: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def state(self) -> Literal["open", "done"]:
        """`done` if a turn reports it done or it has expired, else `open`."""
        return "done" if self.is_done else "open"

    @property
    def is_done(self) -> bool:
        """True if a turn reports it done, or it has expired."""
        return self.resolved_by is not None or self.expired_at is not None

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memory ids of the turns in the evidence, unique, in order."""
        return tuple(dict.fromkeys(source.memory_id for source in self.evidence if source.memory_id is not None))


class ResolutionSignal(BaseModel, frozen=True):
    """A turn's report that something is done, or with `works` that it works again.

    Stored even without effect, as the entry that it resolves may arrive later. Forgetting the turn removes the signal
    and reopens what it resolved. `of_run`: a consolidation's finding, about the entry with these words alone.
    """

    text: str
    source: Literal["said", "model"]
    works: bool = False
    of_run: bool = False
    at: datetime
    offset: int
    memory_id: str
    text_hash: str
    conversation_id: str | None = None


class Intention(BaseModel, frozen=True):
    """A user's intention in a scope, each list oldest first. `version` counts the changes.

    The table holds one entry for each turn that says something; in the shown form repetitions are merged into one entry
    with the evidence of all, and there are no `signs`.
    """

    version: int = 0
    goals: tuple[IntentionEntry, ...] = ()
    constraints: tuple[IntentionEntry, ...] = ()
    blocking_errors: tuple[IntentionEntry, ...] = ()
    decisions: tuple[IntentionEntry, ...] = ()
    signs: tuple[ResolutionSignal, ...] = ()
    set_at: int = -1
    """The offset of the last `set_intention` that was applied."""

    def entries(self) -> Iterator[tuple[IntentionPart, IntentionEntry]]:
        yield from ((part, entry) for part in INTENTION_PARTS for entry in self.of(part))

    def of(self, part: IntentionPart) -> tuple[IntentionEntry, ...]:
        entries: tuple[IntentionEntry, ...] = getattr(self, part)
        return entries

    def open_entries(self, part: IntentionPart) -> tuple[IntentionEntry, ...]:
        return tuple(entry for entry in self.of(part) if not entry.is_done)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of open entries, unique, in order."""
        return tuple(
            dict.fromkeys(name for _, entry in self.entries() if not entry.is_done for name in entry.categories)
        )
