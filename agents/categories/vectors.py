"""The vectors of categories and of the background, made once for each vector space.

Enters: categories and an embedder. Leaves: a matrix for each category. A scope without categories costs nothing; what
is not described otherwise is not embedded again; a text that the model can't take stands for nothing.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from agents.ports.embedder import Embedder
from agents.rules.categories.assignment import Background, category_texts
from agents.rules.categories.background import BACKGROUND_TOPICS
from schemas.categories import Category, Taxonomy
from schemas.failures import ModelMissing, Unavailable
from schemas.vectors import Matrix, Vector

MAX_CACHED_CATEGORIES = 2048
"""Categories whose vectors are kept: at some five texts of 384 numbers each, 16 MB."""


class CategoryVectors:
    """Vectors of what describes categories, by vector space. Raises Unavailable while the embedder can't be reached."""

    def __init__(self) -> None:
        self._categories: OrderedDict[tuple[str, str, str], Matrix] = OrderedDict()
        self._backgrounds: dict[str, Background] = {}

    async def of(self, taxonomy: Taxonomy, embedder: Embedder) -> dict[str, Matrix]:
        """The vectors of all categories by name, each of shape (texts, dim) with at least one row."""
        matrices = {one.name: await self._of(one, embedder) for one in taxonomy.all()}
        return {name: matrix for name, matrix in matrices.items() if len(matrix)}

    async def background(self, embedder: Embedder) -> Background:
        """The background in the embedder's space."""
        digest = embedder.fingerprint.digest
        if digest not in self._backgrounds:
            self._backgrounds[digest] = Background.of(await _embedded(BACKGROUND_TOPICS, embedder))
        return self._backgrounds[digest]

    async def _of(self, category: Category, embedder: Embedder) -> Matrix:
        key = embedder.fingerprint.digest, category.name, category.description
        if (made := self._categories.get(key)) is None:
            made = await _embedded(category_texts(category.name, category.description), embedder)
            self._categories[key] = made
        self._categories.move_to_end(key)
        if len(self._categories) > MAX_CACHED_CATEGORIES:
            self._categories.popitem(last=False)
        return made


async def _embedded(texts: Sequence[str], embedder: Embedder) -> Matrix:
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
