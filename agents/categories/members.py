"""Which items of a scope are under which category: derived from the word index, never counted by hand.

An item is what was found in turns or distilled from them; a turn itself is under no category. What is superseded or
forgotten is no member any more.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import TURN_TYPE, MemoryKind
from schemas.memories import index_names
from schemas.scopes import boundary_of
from schemas.vectors import MemoryFilter


@dataclass(frozen=True, slots=True)
class _Shelf:
    """One shelf of a boundary, with the items of one scope there."""

    name: str
    roster: MemoryColumns
    items: Mask

    def dated(self, mask: Mask) -> list[tuple[int, str]]:
        """When each of these was said, and its id."""
        numbers = np.flatnonzero(mask & self.items).tolist()
        return [(int(self.roster.columns.occurred_ms[number]), self.roster.id_of[number]) for number in numbers]


class CategoryMembers:
    """Reads the word index of this worker. What it gives is of this moment: to be used before the next await."""

    def __init__(self, words: LexicalIndex) -> None:
        self._words = words

    def of(self, scope: Mapping[str, str], names: Sequence[str]) -> dict[str, list[str]]:
        """By category the ids of its members in a scope, the newest first."""
        found: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
        for shelf in self._shelves(scope):
            for name, mask in zip(names, self._under(shelf, names), strict=True):
                found[name] += shelf.dated(mask)
        return {name: [memory_id for _, memory_id in sorted(some, reverse=True)] for name, some in found.items()}

    def by_item(self, scope: Mapping[str, str], names: Sequence[str]) -> dict[str, set[str]]:
        """By id of an item of a scope which of these categories it is under; none for one that is under none."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, members in self.of(scope, names).items():
            for memory_id in members:
                found[memory_id].add(name)
        return dict(found)

    def uncategorised(self, scope: Mapping[str, str], names: Sequence[str]) -> int:
        """How many items of a scope are under none of these categories."""
        left = 0
        for shelf in self._shelves(scope):
            under = np.zeros(len(shelf.items), np.bool_)
            for mask in self._under(shelf, names):
                under |= mask
            left += int((shelf.items & ~under).sum())
        return left

    def items_by_mode(self, scope: Mapping[str, str]) -> dict[str, list[str]]:
        """By mode the ids of all items of a scope."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for shelf in self._shelves(scope):
            modes = [kind.mode for kind in shelf.roster.kinds]
            for number in np.flatnonzero(shelf.items).tolist():
                found[modes[int(shelf.roster.columns.kinds[number])]].append(shelf.roster.id_of[number])
        return dict(found)

    def scopes(self, boundary: str) -> list[dict[str, str]]:
        """The scopes of a boundary that have memories."""
        kinds = [kind.scope for shelf in index_names(boundary) for kind in self._words.memory_columns(shelf).kinds]
        return [dict(scope) for scope in dict.fromkeys(kinds)]

    def _shelves(self, scope: Mapping[str, str]) -> Iterator[_Shelf]:
        where = MemoryFilter(boundary=boundary_of(scope), scope={field: (value,) for field, value in scope.items()})
        for name in index_names(where.boundary):
            roster = self._words.memory_columns(name)
            items = roster.of_kind(_is_distilled).astype(np.bool_) if name == where.boundary else roster.columns.live
            yield _Shelf(name, roster, roster.admitted(where) & items)

    def _under(self, shelf: _Shelf, names: Sequence[str]) -> Iterator[Mask]:
        for postings in self._words.category_postings(shelf.name, names):
            mask = np.zeros(len(shelf.items), np.bool_)
            mask[postings.numbers] = True
            yield mask


def _is_distilled(kind: MemoryKind) -> bool:
    """Whether what stands among the turns is not one of them."""
    return kind.type != TURN_TYPE
