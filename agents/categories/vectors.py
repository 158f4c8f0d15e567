"""Cache the vectors of category descriptions and of the background, by vector space.

A text that the model can't embed is left out.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from agents.ports.embedder import Embedder
from agents.rules.categories.assignment import BACKGROUND_TOPICS, Background, category_texts
from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Matrix, Vector
from schemas.state.categories import Category, Taxonomy

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
        matrices = {one.name: await self._of(one, embedder) for one in taxonomy.all()}
        return {name: matrix for name, matrix in matrices.items() if len(matrix)}

    async def background(self, embedder: Embedder) -> Background:
        """Return the background in the embedder's space."""
        digest = embedder.fingerprint.digest
        if (made := self._backgrounds.get(digest)) is None:
            made = Background.of(await _embed_all(BACKGROUND_TOPICS, embedder))
        return _keep(self._backgrounds, digest, made, MAX_BACKGROUNDS)

    async def _of(self, category: Category, embedder: Embedder) -> Matrix:
        key = embedder.fingerprint.digest, category.name, category.description
        if (made := self._categories.get(key)) is None:
            made = await _embed_all(category_texts(category.name, category.description), embedder)
        return _keep(self._categories, key, made, MAX_CACHED_CATEGORIES)


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> Value:
    """Keep a value as the one used last, and of all at most `limit`; return it."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > limit:
        kept.popitem(last=False)
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
