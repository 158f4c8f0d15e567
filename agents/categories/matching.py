"""Match items with categories by their vectors: a new vector, or all items of a scope when categories have changed.

Writes nothing: `agents.memory` stores the assignments.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.models import Embedder
from agents.ports.stores import Categories, Memories
from agents.rules.categories.assignment import (
    BACKGROUND_TOPICS,
    FILING_LIMITS,
    Background,
    FilingLimits,
    category_texts,
    match_categories,
    reassign_categories,
)
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import TURN_TYPE, MemoryColumns
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.models.vectors import Matrix, MemoryFilter, Vector
from schemas.state.categories import Taxonomy
from schemas.state.memories import CategoryAssignment, Memory, index_names


@dataclass(frozen=True, slots=True)
class _ScopeItems:
    name: str
    memories: MemoryColumns
    items: Mask

    def dated(self, mask: Mask) -> list[tuple[int, str]]:
        numbers = np.flatnonzero(mask & self.items).tolist()
        return [(int(self.memories.columns.occurred_ms[number]), self.memories.id_of[number]) for number in numbers]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CategoryMembers:
    """Reads members of categories from the lexical index: current items and distilled memories, never turns.

    Use the results before the next await: later writes make them outdated. `boundary_fields` are those of the
    deployment's scopes.
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
        """Count the items of a scope that are in no category of these."""
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


Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_CACHED_CATEGORIES = 2048
"""Cached categories: at some five texts of 384 numbers each, 16 MB."""


MAX_BACKGROUNDS = 32
"""Cached backgrounds: users choose the prefix of passages, and with it the vector space. Each takes 40 KB to 120 KB."""


class CategoryVectors:
    """Categories and an embedder in, their vectors out. Raises Unavailable while the embedder is not reachable."""

    def __init__(self) -> None:
        self._categories: OrderedDict[tuple[str, str, str], Matrix] = OrderedDict()
        self._backgrounds: OrderedDict[str, Background] = OrderedDict()

    async def of(self, taxonomy: Taxonomy, embedder: Embedder) -> dict[str, Matrix]:
        """Return the vectors of all categories by name, each of shape (texts, dim) with at least one row."""
        matrices: dict[str, Matrix] = {}
        for category in taxonomy.all():
            key = embedder.fingerprint.digest, category.name, category.description
            if (made := self._categories.get(key)) is None:
                made = await _embed_all(category_texts(category.name, category.description), embedder)
            matrix = _keep(self._categories, key, made, MAX_CACHED_CATEGORIES)
            if len(matrix):
                matrices[category.name] = matrix
        return matrices

    async def background(self, embedder: Embedder) -> Background:
        digest = embedder.fingerprint.digest
        if (made := self._backgrounds.get(digest)) is None:
            made = Background.of(await _embed_all(BACKGROUND_TOPICS, embedder))
        return _keep(self._backgrounds, digest, made, MAX_BACKGROUNDS)


def _keep(cache: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> Value:
    """Keep a value as the one used last, and of all at most `limit`; return it."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > limit:
        cache.popitem(last=False)
    return value


async def _embed_all(texts: Sequence[str], embedder: Embedder) -> Matrix:
    vectors = [await _vector(text, embedder) for text in texts]
    rows = [vector for vector in vectors if vector is not None]
    return np.stack(rows) if rows else np.empty((0, embedder.fingerprint.dim), np.float32)


async def _vector(text: str, embedder: Embedder) -> Vector | None:
    try:
        vector = (await embedder.passage(text)).pooled
    except (ModelMissing, Unavailable):
        raise
    except Exception:
        return None
    return vector if bool(np.isfinite(vector).all()) else None


VECTOR_BATCH_ITEMS = 256
"""Vectors that are read at once: with token vectors a megabyte."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CategoryMatcher:
    """Items in, their categories out. Raises Unavailable while the index or an embedder is not reachable.

    `vectors` is a cache that partitions share.
    """

    categories: Categories
    memories: Memories
    members: CategoryMembers
    index: VectorIndex
    spaces: VectorSpaces
    vectors: CategoryVectors
    limits: FilingLimits = FILING_LIMITS

    async def match(self, memory: Memory, vector: Vector, embedder: Embedder) -> tuple[CategoryAssignment, ...] | None:
        """Return the categories of an item with this vector; None for a turn, and in a scope without categories."""
        if memory.origin == "said":
            return None
        taxonomy = self.categories.get(memory.scope)
        if not len(taxonomy):
            return None
        [matched] = await self._match_rows(vector[np.newaxis], taxonomy, embedder)
        return matched

    async def reassignments(self, scope: Mapping[str, str]) -> dict[str, tuple[CategoryAssignment, ...]]:
        """Return the new categories of the items of a scope that match others than their records have.

        Items without a vector are matched when they get it.
        """
        changed: dict[str, tuple[CategoryAssignment, ...]] = {}
        names_by_item = self.members.by_item(scope, sorted(self.categories.get(scope).categories))
        for mode, ids in self.members.items_by_mode(scope).items():
            for start in range(0, len(ids), VECTOR_BATCH_ITEMS):
                matched = await self._match_items(mode, ids[start : start + VECTOR_BATCH_ITEMS], scope)
                taxonomy = self.categories.get(scope)
                for memory_id, categories in matched.items():
                    # Only records of items with other categories are read: reading all would take most of the time.
                    if {assignment.name for assignment in categories} == names_by_item.get(memory_id, set()):
                        continue
                    memory = self.memories.get(memory_id)
                    if memory is not None and memory.item is not None:
                        after = reassign_categories(memory.item.categories, categories, taxonomy)
                        if {each.name for each in after} != {each.name for each in memory.item.categories}:
                            changed[memory_id] = after
        return changed

    async def _match_items(
        self, mode: str, ids: Sequence[str], scope: Mapping[str, str]
    ) -> dict[str, tuple[CategoryAssignment, ...]]:
        """Match the items of a mode that have a vector in its space, whatever their status.

        A vector may be written and not reported yet: `Embed` has matched it with the categories of before. It is not of
        another text, as an item's id is a hash of its words and its mode.
        """
        boundary = self.members.boundary_of(scope)
        try:
            embedder, space = self.spaces.resolve(self.spaces.mode(boundary, mode, scope))
            vectors = await self.index.pooled(space, ids)
            if not vectors:
                return {}
            rows = np.stack(list(vectors.values()))
            matched = await self._match_rows(rows, self.categories.get(scope), embedder)
        except (ModelMissing, Rejected):
            return {}  # The items are matched when the model is loaded and embeds them.
        return dict(zip(vectors, matched, strict=True))

    async def _match_rows(
        self, rows: Matrix, taxonomy: Taxonomy, embedder: Embedder
    ) -> list[tuple[CategoryAssignment, ...]]:
        background = await self.vectors.background(embedder)
        return match_categories(rows, await self.vectors.of(taxonomy, embedder), background, self.limits)
