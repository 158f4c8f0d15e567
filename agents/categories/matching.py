"""Match items with categories by their vectors: a new vector, or all items of a scope when categories have changed.

Writes nothing: `agents.memory` stores the assignments.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from agents.categories.members import CategoryMembers
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.models import Embedder
from agents.ports.stores import Categories, Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.categories.assignment import (
    BACKGROUND_TOPICS,
    FILING_LIMITS,
    Background,
    FilingLimits,
    category_texts,
    match_categories,
    reassign_categories,
)
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.models.vectors import Matrix, Vector
from schemas.state.categories import Taxonomy
from schemas.state.memories import CategoryAssignment, Memory

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
        """Return the background in the embedder's space."""
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


@dataclass(frozen=True, slots=True)
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
                changed.update(self._changed(matched, names_by_item, scope))
        return changed

    def _changed(
        self,
        matched: Mapping[str, tuple[CategoryAssignment, ...]],
        names_by_item: Mapping[str, set[str]],
        scope: Mapping[str, str],
    ) -> Iterator[tuple[str, tuple[CategoryAssignment, ...]]]:
        """Yield the items with other categories. Reads only their records: reading all would take most of the time."""
        taxonomy = self.categories.get(scope)
        for memory_id, categories in matched.items():
            if {assignment.name for assignment in categories} == names_by_item.get(memory_id, set()):
                continue
            memory = self.memories.get(memory_id)
            if memory is not None and memory.item is not None:
                after = reassign_categories(memory.item.categories, categories, taxonomy)
                if {each.name for each in after} != {each.name for each in memory.item.categories}:
                    yield memory_id, after

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
