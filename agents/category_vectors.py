"""The vectors of categories and of the background, made once for each vector space.

Enters: categories, an embedder and its space. Leaves: a matrix for each category. A scope without categories costs
nothing; what is not described otherwise is not embedded again.
"""

from collections import OrderedDict

import numpy as np

from agents.ports import Embedder
from agents.rules.categorizing import Background, described_by
from agents.rules.category_background import BACKGROUND
from schemas.categories import Category, Taxonomy
from schemas.vectors import Matrix

CACHED = 2048
"""Categories whose vectors are kept: at some five texts of 384 numbers each, 16 MB."""


class CategoryVectors:
    """Vectors of what describes categories, by vector space. Raises Unavailable while the embedder can't be reached."""

    def __init__(self) -> None:
        self._categories: OrderedDict[tuple[str, str, str], Matrix] = OrderedDict()
        self._backgrounds: dict[str, Background] = {}

    async def of(self, taxonomy: Taxonomy, embedder: Embedder) -> dict[str, Matrix]:
        """The vectors of all categories by name, each of shape (texts, dim)."""
        return {one.name: await self._of(one, embedder) for one in taxonomy.all()}

    async def background(self, embedder: Embedder) -> Background:
        """The background in the embedder's space."""
        digest = embedder.fingerprint.digest
        if digest not in self._backgrounds:
            self._backgrounds[digest] = Background.of(await _embedded(list(BACKGROUND), embedder))
        return self._backgrounds[digest]

    async def _of(self, category: Category, embedder: Embedder) -> Matrix:
        key = embedder.fingerprint.digest, category.name, category.description
        if (known := self._categories.get(key)) is not None:
            self._categories.move_to_end(key)
            return known
        made = await _embedded(described_by(category.name, category.description), embedder)
        self._categories[key] = made
        if len(self._categories) > CACHED:
            self._categories.popitem(last=False)
        return made


async def _embedded(texts: list[str], embedder: Embedder) -> Matrix:
    return np.stack([(await embedder.passage(text)).pooled for text in texts])
