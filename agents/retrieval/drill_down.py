"""Drill down in a search with `depth` `auto`: intention, categories, items, until one layer is sufficient.

Layers contain only what derives from existing memories. Awaits nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Categories, Intentions, Memories
from agents.rules.answer.drill_down import (
    Depth,
    LayerResult,
    Layers,
    category_layer,
    group_by_part,
    intention_layer,
    select_scopes,
)
from agents.rules.answer.hits import TermCoverage, match_entries
from agents.rules.categories.taxonomy import category_text, visible_category
from agents.rules.index.memory_columns import MemoryColumns, filtered_reader
from agents.rules.ranking.memory_features import QueryFeatures
from schemas.models.vectors import MemoryFilter
from schemas.scopes import scope_of_user

MAX_MEMBERS = 100
"""Records that are read to find the turns behind a layer: a category's summary derives from some eight."""


@dataclass(frozen=True, slots=True)
class DrillDownLevel:
    """The depth of a search, the content of the layers above, and the memories that may be found (None: any).

    `rests_on` are the memories behind the layers above the items.
    """

    depth: Depth = "items"
    within: frozenset[str] | None = None
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = field(default_factory=list)
    rests_on: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DrillDown:
    """Reads the layers above the items.

    `intentions` has visible entries only; `boundary_fields` are those of the deployment's scopes.
    """

    words: LexicalIndex
    intentions: Intentions
    categories: Categories
    memories: Memories
    boundary_fields: BoundaryFields = USER_BOUNDARY

    def levels(
        self, where: MemoryFilter, features: QueryFeatures, columns: MemoryColumns, decided: Depth | None = None
    ) -> Iterator[DrillDownLevel]:
        """Yield the sufficient layers from the top; the items always come last.

        `where` filters turns, `features` are the question's features over them, `columns` has the boundary's columns.
        Instead of the rules, `decided` says which layer suffices.
        """
        read = filtered_reader(self.memories.get, self.words.memory_columns, where)
        coverage = TermCoverage.of(features, columns, weigh_unknown=True)
        scopes = select_scopes(where, columns)
        of_user = scope_of_user(where.boundary, where.scope, self.boundary_fields)
        views = [(scope, self.intentions.get(scope)) for scope in (of_user, *scopes)]
        above = intention_layer(views, features.question, coverage, read if where.needs_columns else None)
        shown = group_by_part(above.shown)
        if _suffices(above, "intention", decided):
            yield DrillDownLevel("intention", above.rests_on, shown)
        # Only categories that match the question are checked for missing sources.
        scoped = [(scope, category) for scope in scopes for category in self.categories.get(scope).all()]
        near = match_entries([category_text(category) for _, category in scoped], coverage)
        visible = [(scoped[match.place][0], visible_category(scoped[match.place][1], read)) for match in near]
        matching = category_layer(visible, features.question, coverage)
        if _suffices(matching, "categories", decided):
            sources = (read(memory_id) for memory_id in sorted(matching.rests_on)[:MAX_MEMBERS])
            turns = (quote.memory_id for memory in sources if memory for quote in memory.evidence if quote.memory_id)
            yield DrillDownLevel("categories", matching.rests_on | frozenset(turns), shown, matching.shown)
        yield DrillDownLevel("items", None, shown, matching.shown, above.rests_on | matching.rests_on)

    def layers(self, question: str, where: MemoryFilter, features: QueryFeatures, columns: MemoryColumns) -> Layers:
        """Return the matches of a question in the layers above items."""
        *_, last = self.levels(where, features, columns, "items")
        behind = map(self.memories.get, last.rests_on)
        is_private = any(memory is not None and memory.visibility.private for memory in behind)
        return Layers(question, last.intention, last.categories, is_private=is_private)


def _suffices(layer: LayerResult, depth: Depth, decided: Depth | None) -> bool:
    return layer.suffices if decided is None else decided == depth
