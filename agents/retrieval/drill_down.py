"""The way down of a search with `depth` `auto`: intention, categories, items, as far as a question needs.

A question's words come in; the layers leave one after the other, the first one that says enough before what is below
it. Guaranteed: what a layer shows rests on memories that are there, at this moment. Awaits nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from agents.ports.categories import Categories
from agents.ports.intentions import Intentions
from agents.rules.answer.drill_down import Layer, Scope, by_list, category_layer, intention_layer, scopes_read
from agents.rules.answer.sufficiency import matches
from agents.rules.answer.term_coverage import Sought
from agents.rules.categories.view import words_of
from agents.rules.categories.visibility import as_it_stands
from agents.rules.index.memory_columns import Roster
from agents.rules.ranking.query_features import Clues
from schemas.memories import Memory
from schemas.vectors import Where

Depth = Literal["intention", "categories", "items"]

MOST_MEMBERS = 100
"""Records of items that are read to find the turns behind a layer: a category rests on some eight."""


@dataclass(frozen=True, slots=True)
class Level:
    """How deep a search has gone: what the layers above say, and the memories that may be found, None for any."""

    depth: Depth = "items"
    within: frozenset[str] | None = None
    intention: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = field(default_factory=list)


class Layers:
    """Reads what lies above the items."""

    def __init__(
        self,
        intentions: Intentions,
        categories: Categories,
        record: Callable[[int, str], Memory | None],
    ) -> None:
        """Take the ports; `intentions` gives what may be shown, `record` reads by partition and memory id."""
        self._intentions = intentions
        self._categories = categories
        self._record = record

    def down(self, partition: int, where: Where, clues: Clues, roster: Roster) -> Iterator[Level]:
        """The layers that say enough, from above; the items come last, always.

        `where` is the read of the turns, `clues` are those of the question among them, `roster` is the boundary's.
        """
        sought = Sought.of(clues, roster, unheard=True)
        scopes = scopes_read(where, roster)
        views = [(scope, self._intentions.get(partition, scope)) for scope in scopes]
        above = intention_layer(views, clues.question, sought)
        shown = by_list(above.shown)
        if above.suffices:
            yield Level("intention", above.rests_on, shown)
        found = self._category_layer(partition, scopes, clues, sought)
        if found.suffices:
            yield Level("categories", self._with_turns(partition, found.rests_on), shown, found.shown)
        yield Level("items", None, shown, found.shown)

    def _category_layer(self, partition: int, scopes: Sequence[Scope], clues: Clues, sought: Sought) -> Layer:
        """What categories say; only those that are about the question are looked at as they stand now."""
        known = [(scope, one) for scope in scopes for one in self._categories.get(partition, scope).all()]
        near = matches([words_of(one) for _, one in known], sought)
        read = partial(self._record, partition)
        standing = [(known[one.place][0], as_it_stands(known[one.place][1], read)) for one in near]
        return category_layer(standing, clues.question, sought)

    def _with_turns(self, partition: int, memory_ids: frozenset[str]) -> frozenset[str]:
        """These memories, with the turns that they rest on."""
        found = (self._record(partition, memory_id) for memory_id in sorted(memory_ids)[:MOST_MEMBERS])
        turns = (one.memory_id for memory in found if memory for one in memory.evidence if one.memory_id)
        return memory_ids | frozenset(turns)
