"""The way down of a search with `depth` `auto`: intention, categories, items, as far as a question needs.

A question's words come in; the layers leave one after the other, the first one that says enough before what is below
it. Guaranteed: what a layer shows rests on memories that are there, at this moment. Awaits nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.ports.categories import Categories
from agents.ports.intentions import Intentions
from agents.ports.stores import Memories
from agents.rules.answer.drill_down import (
    LayerResult,
    ScopeFields,
    category_layer,
    group_by_part,
    intention_layer,
    select_scopes,
)
from agents.rules.answer.sufficiency import match_entries
from agents.rules.answer.term_coverage import TermCoverage
from agents.rules.categories.view import category_text
from agents.rules.categories.visibility import visible_category
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.query_features import QueryFeatures
from schemas.vectors import MemoryFilter

Depth = Literal["intention", "categories", "items"]

MAX_MEMBERS = 100
"""Records of items that are read to find the turns behind a layer: a category rests on some eight."""


@dataclass(frozen=True, slots=True)
class DrillDownLevel:
    """How deep a search has gone: what the layers above say, and the memories that may be found, None for any."""

    depth: Depth = "items"
    within: frozenset[str] | None = None
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = field(default_factory=list)


class DrillDown:
    """Reads what lies above the items."""

    def __init__(
        self,
        intentions: Intentions,
        categories: Categories,
        memories: Memories,
    ) -> None:
        """Take the ports; `intentions` has visible entries only."""
        self._intentions = intentions
        self._categories = categories
        self._memories = memories

    def levels(self, where: MemoryFilter, clues: QueryFeatures, roster: MemoryColumns) -> Iterator[DrillDownLevel]:
        """The layers that say enough, from above; the items come last, always.

        `where` is the read of the turns, `clues` are those of the question among them, `roster` is the boundary's.
        """
        sought = TermCoverage.of(clues, roster, weigh_unknown=True)
        scopes = select_scopes(where, roster)
        views = [(scope, self._intentions.get(scope)) for scope in scopes]
        above = intention_layer(views, clues.question, sought)
        shown = group_by_part(above.shown)
        if above.suffices:
            yield DrillDownLevel("intention", above.rests_on, shown)
        found = self._category_layer(scopes, clues, sought)
        if found.suffices:
            yield DrillDownLevel("categories", self._with_turns(found.rests_on), shown, found.shown)
        yield DrillDownLevel("items", None, shown, found.shown)

    def _category_layer(self, scopes: Sequence[ScopeFields], clues: QueryFeatures, sought: TermCoverage) -> LayerResult:
        """What categories say; only those that are about the question are looked at as they stand now."""
        known = [(scope, one) for scope in scopes for one in self._categories.get(scope).all()]
        near = match_entries([category_text(one) for _, one in known], sought)
        read = self._memories.get
        standing = [(known[one.place][0], visible_category(known[one.place][1], read)) for one in near]
        return category_layer(standing, clues.question, sought)

    def _with_turns(self, memory_ids: frozenset[str]) -> frozenset[str]:
        """These memories, with the turns that they rest on."""
        found = (self._memories.get(memory_id) for memory_id in sorted(memory_ids)[:MAX_MEMBERS])
        turns = (one.memory_id for memory in found if memory for one in memory.evidence if one.memory_id)
        return memory_ids | frozenset(turns)
