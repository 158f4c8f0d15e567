"""Suggest categories that items of no category would make, and merges and splits of those that are there.

Enters: the command `suggest_categories`. Leaves: groups of a project's items that are in no category, each with a
name, a description to declare it with and examples; and the changes that a new clustering proposes, as a diff. Changes
nothing. Reads at most `MAX_READ_ITEMS` items of each mode, sampled evenly over time.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.categories.matching import CategoryMembers
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.commands import CommandResult
from agents.ports.indexes import VectorIndex
from agents.ports.stores import Categories, Memories
from agents.rules.categories.taxonomy import CategoryGroups, Rows, group_items
from agents.rules.clustering.clustering import normalise_rows
from agents.rules.modes.mode_suggesting import suggest_mode_name, top_keywords
from schemas.failures import ModelMissing, Rejected
from schemas.messages.commands import Command
from schemas.models.vectors import Vector
from schemas.scopes import ScopeFields
from schemas.state.memories import Memory

MAX_READ_ITEMS = 4000
"""Maximum items read of a mode: 200 take about 20 ms."""

PAGE_SIZE = 200
"""Vectors that are read at once: with token vectors some megabytes."""

MAX_EXAMPLES = 3
MAX_EXAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SuggestCategories:
    """A command in, suggestions out."""

    categories: Categories
    memories: Memories
    members: CategoryMembers
    index: VectorIndex
    spaces: VectorSpaces

    async def suggest_categories(self, command: Command, _offset: int) -> CommandResult:
        """Group the items of a project, and compare the groups with its categories."""
        scope = command.scope.model_dump()
        names = sorted(self.categories.get(scope).categories)
        filed = self.members.by_item(scope, names)
        sizes = Counter(name for of_item in filed.values() for name in of_item)
        suggestions: list[dict[str, Any]] = []
        diff: list[dict[str, Any]] = []
        taken, looked_at = set(names), 0
        for mode, ids in sorted(self.members.items_by_mode(scope).items()):
            vectors = await self._vectors(scope, mode, sorted(ids)[:: max(1, -(-len(ids) // MAX_READ_ITEMS))])
            looked_at += len(vectors)
            items = [*vectors]
            rows = {
                name: [row for row, memory_id in enumerate(items) if name in filed.get(memory_id, ())] for name in names
            }
            # A category is compared in the mode that most of its items are in: cosines of two spaces never are.
            here = {name: of_name for name, of_name in rows.items() if 2 * len(of_name) > sizes[name]}
            unfiled = [row for row, memory_id in enumerate(items) if memory_id not in filed]
            groups = await asyncio.to_thread(_grouped, vectors, here, unfiled)
            texts = [memory.text for memory_id in items if (memory := self._current(memory_id)) is not None]
            for group in groups.found:
                shown = self._shown([items[row] for row in group], texts, taken)
                suggestions += [{**each, "in_mode": mode} for each in shown]
            diff += [
                {
                    "op": "merge_categories",
                    "before": {larger: len(here[larger]), smaller: len(here[smaller])},
                    "after": {larger: len({*here[larger], *here[smaller]})},
                }
                for larger, smaller in groups.merges
            ]
            for name, parts in groups.splits.items():
                into = [each for part in parts for each in self._shown([items[row] for row in part], texts, taken)]
                after = {each["name"]: each["size"] for each in into}
                rest = len(here[name]) - sum(after.values())
                after |= {name: rest} if rest else {}
                diff.append({"op": "split_category", "before": {name: len(here[name])}, "after": after, "into": into})
        suggestions.sort(key=lambda suggestion: -suggestion["size"])
        return CommandResult({"suggestions": suggestions, "diff": diff, "looked_at": looked_at})

    async def _vectors(self, scope: ScopeFields, mode: str, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of the items that have one; empty while the mode's model is not loaded."""
        try:
            declared = self.spaces.mode(self.members.boundary_of(scope), mode, scope)
            space = self.spaces.resolve(declared)[1]
        except (ModelMissing, Rejected):
            return {}
        vectors: dict[str, Vector] = {}
        for start in range(0, len(ids), PAGE_SIZE):
            vectors.update(await self.index.pooled(space, ids[start : start + PAGE_SIZE]))
        return vectors

    def _shown(self, ids: Sequence[str], texts: Sequence[str], taken: set[str]) -> list[dict[str, Any]]:
        """Return what is shown of a group, under an unused name; nothing where all of it was forgotten meanwhile."""
        items = [memory for memory_id in ids if (memory := self._current(memory_id)) is not None]
        if not items:
            return []
        terms = top_keywords((item.text for item in items), texts)
        name = suggest_mode_name(terms, taken)
        taken.add(name)
        examples = [{"memory_id": item.memory_id, "text": item.text[:MAX_EXAMPLE_CHARS]} for item in items]
        return [
            {
                "name": name,
                "description": ", ".join(terms),
                "size": len(items),
                "terms": terms,
                "examples": examples[:MAX_EXAMPLES],
                "memory_ids": [item.memory_id for item in items],
            }
        ]

    def _current(self, memory_id: str) -> Memory | None:
        memory = self.memories.get(memory_id)
        return memory if memory is not None and memory.superseded_by is None else None


def _grouped(vectors: Mapping[str, Vector], filed: Mapping[str, Rows], unfiled: Rows) -> CategoryGroups:
    if not vectors:
        return CategoryGroups([], [], {})
    return group_items(normalise_rows(np.stack([*vectors.values()])), filed, unfiled)
