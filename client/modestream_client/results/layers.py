"""Categories and intentions, as commands answer them."""

from typing import Literal

from pydantic import BaseModel

from modestream_client.hits import Evidence
from modestream_client.vocabulary import MemoryType


class CategoryItem(BaseModel, frozen=True):
    """An item of a category; `confidence` (0..1) that it belongs there."""

    memory_id: str
    type: MemoryType
    mode: str
    text: str
    confidence: float | None = None


class ShownCategory(BaseModel, frozen=True):
    """A category of `size` items; `declared` by a user, else by the deployment.

    `anchors` are its most typical items, `items` its latest 100; both are empty, and the summary None, where they were
    not asked for.
    """

    name: str
    description: str = ""
    version: int
    size: int
    declared: bool = False
    summary: str | None = None
    anchors: tuple[CategoryItem, ...] = ()
    items: tuple[CategoryItem, ...] = ()


class ShownCategories(BaseModel, frozen=True):
    """The categories of a scope, and the number of items in none."""

    categories: tuple[ShownCategory, ...]
    uncategorised: int = 0


class IntentionItem(BaseModel, frozen=True):
    """A goal, constraint, blocking error or decision; `evidence` are the turns that say so, empty where it was set."""

    text: str
    state: Literal["open", "done"]
    source: str
    since: str
    item_id: str | None = None
    evidence: tuple[Evidence, ...] = ()
    of: str | None = None
    """The list that a resolved entry was in."""
    resolved_by: str | None = None
    """The memory that reports it done."""


class ShownIntention(BaseModel, frozen=True):
    """The user's intention in a project: what is open by kind, and what was resolved."""

    goals: tuple[IntentionItem, ...] = ()
    constraints: tuple[IntentionItem, ...] = ()
    blocking_errors: tuple[IntentionItem, ...] = ()
    decisions: tuple[IntentionItem, ...] = ()
    resolved: tuple[IntentionItem, ...] = ()
    categories: tuple[str, ...] = ()
    version: int
