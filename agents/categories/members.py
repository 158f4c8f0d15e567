"""The members of categories, read from the lexical index.

Items and distilled memories can be members, turns cannot; nor can superseded or forgotten memories.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from agents.ports.lexical_index import LexicalIndex
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import TURN_TYPE, MemoryColumns
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import index_names


@dataclass(frozen=True, slots=True)
class _ScopeItems:
    name: str
    memories: MemoryColumns
    items: Mask

    def dated(self, mask: Mask) -> list[tuple[int, str]]:
        """Return time and id of each of these items."""
        numbers = np.flatnonzero(mask & self.items).tolist()
        return [(int(self.memories.columns.occurred_ms[number]), self.memories.id_of[number]) for number in numbers]


@dataclass(frozen=True, slots=True)
class CategoryMembers:
    """Reads the lexical index. Use the results before the next await: later writes make them outdated.

    `boundary_fields` are those of the deployment's scopes.
    """

    words: LexicalIndex
    boundary_fields: BoundaryFields = USER_BOUNDARY

    def boundary_of(self, scope: Mapping[str, str]) -> str:
        return self.boundary_fields.key(scope)

    def of(self, scope: Mapping[str, str], names: Sequence[str]) -> dict[str, list[str]]:
        """Return the member ids of each category in a scope, newest first."""
        dated_ids: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
        for index in self._indexes(scope):
            for name, mask in zip(names, self._masks(index, names), strict=True):
                dated_ids[name] += index.dated(mask)
        return {name: [memory_id for _, memory_id in sorted(some, reverse=True)] for name, some in dated_ids.items()}

    def by_item(self, scope: Mapping[str, str], names: Sequence[str]) -> dict[str, set[str]]:
        """Return the categories of each item of a scope; items without any are left out."""
        names_by_item: defaultdict[str, set[str]] = defaultdict(set)
        for name, members in self.of(scope, names).items():
            for memory_id in members:
                names_by_item[memory_id].add(name)
        return dict(names_by_item)

    def uncategorised(self, scope: Mapping[str, str], names: Sequence[str]) -> int:
        """Count the items of a scope that are in none of these categories."""
        count = 0
        for index in self._indexes(scope):
            categorised = np.zeros(len(index.items), np.bool_)
            for mask in self._masks(index, names):
                categorised |= mask
            count += int((index.items & ~categorised).sum())
        return count

    def items_by_mode(self, scope: Mapping[str, str]) -> dict[str, list[str]]:
        ids_by_mode: defaultdict[str, list[str]] = defaultdict(list)
        for index in self._indexes(scope):
            memories, modes = index.memories, [kind.mode for kind in index.memories.kinds]
            for number in np.flatnonzero(index.items).tolist():
                ids_by_mode[modes[int(memories.columns.kinds[number])]].append(memories.id_of[number])
        return dict(ids_by_mode)

    def _indexes(self, scope: Mapping[str, str]) -> Iterator[_ScopeItems]:
        where = MemoryFilter(self.boundary_of(scope), {field: (value,) for field, value in scope.items()})
        for name in index_names(where.boundary):
            memories = self.words.memory_columns(name)
            items = memories.columns.live
            if name == where.boundary:
                # The index of turns has distilled memories as well: these can be members.
                items = memories.of_kind(lambda kind: kind.type != TURN_TYPE).astype(np.bool_)
            yield _ScopeItems(name, memories, memories.admitted(where) & items)

    def _masks(self, index: _ScopeItems, names: Sequence[str]) -> Iterator[Mask]:
        for postings in self.words.category_postings(index.name, names):
            mask = np.zeros(len(index.items), np.bool_)
            mask[postings.numbers] = True
            yield mask
