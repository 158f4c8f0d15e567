from collections.abc import Sequence

from agents.ports.models import Embedder
from schemas.models.vectors import Encoded, Point
from schemas.state.memories import hash_texts
from schemas.state.modes import Mode, VectorSpace
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.vector_index import FakeIndex

UNEMBEDDABLE = "unspeakable"
INFINITE = "infinite"
BAD = (UNEMBEDDABLE, INFINITE)
"""Texts that no vector is made of: the model can't take the one, the index refuses that of the other."""


class RejectingEmbedder:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fingerprint = embedder.fingerprint
        self.query = embedder.query

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed, or raise ValueError."""
        if text == UNEMBEDDABLE:
            raise ValueError("the model can't take this")
        return await self._embedder.passage(text)


class RejectingEmbedders(FakeEmbedders):
    def of(self, mode: Mode) -> Embedder:
        return RejectingEmbedder(super().of(mode))


class RejectingIndex(FakeIndex):
    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        if any(point.content_hash == hash_texts([INFINITE]) for point in points):
            raise ValueError("no numbers")
        await super().upsert(space, points)
