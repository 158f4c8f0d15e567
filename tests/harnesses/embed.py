"""`Embed` over fakes that reject one text each, with modes of one user."""

from collections.abc import Sequence

import numpy as np

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.models import Embedder
from agents.rules.memory.versions import identify_turn, next_memory
from schemas.internal.events import Embedded, Forgotten, Remembered
from schemas.models.vectors import Encoded, Point
from schemas.moments import moment_of
from schemas.state.memories import Embedding, Memory, VectorLocation
from schemas.state.modes import GENERAL, Mode, VectorSpace
from streams.flow.stores import at_partition
from tests.builders.turns import TIMESTAMP_MS, turn
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.modes import FakeModes
from tests.fakes.vector_index import FakeIndex

PARTITION = 1


def remembered(text: str, turn_id: str = "t", mode: str = "general") -> Memory:
    message = turn(text, turn_id=turn_id)
    return next_memory(
        message, identify_turn(message, moment_of(TIMESTAMP_MS)), None, (mode, "caller"), 0, asks_model=False
    )


class RejectingEmbedder:
    """Fails on `unspeakable` and returns infinite vectors for `infinite`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fingerprint = embedder.fingerprint
        self.query = embedder.query

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed, or raise ValueError."""
        if text == "unspeakable":
            raise ValueError("x" * 1000)
        encoded = await self._embedder.passage(text)
        if text == "infinite":
            return Encoded(np.full_like(encoded.pooled, np.inf), encoded.tokens)
        return encoded


class RejectingEmbedders(FakeEmbedders):
    def of(self, mode: Mode) -> Embedder:
        return RejectingEmbedder(super().of(mode))


class CountingIndex(FakeIndex):
    def __init__(self) -> None:
        super().__init__()
        self.upserts: list[list[str]] = []

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Record the ids, then write."""
        self.upserts.append([point.memory_id for point in points])
        await super().upsert(space, points)


class EmbedHarness:
    """`Embed` with the modes of one user; two of them share an embedder."""

    def __init__(self) -> None:
        self.modes, self.embedders = FakeModes(), RejectingEmbedders()
        self.index = CountingIndex()
        self.clock = FakeClock()
        self.spaces = VectorSpaces(at_partition(self.modes, PARTITION), self.embedders)
        self.embed = Embed(lambda _: self.spaces, self.index, self.clock)
        for name, embedder, dim in (("code", "tiny32", 32), ("notes", GENERAL, 384)):
            mode = Mode(name=name, embedder=embedder, embedding_dim=dim)
            self.modes.declare(mode, boundary="u1", partition=PARTITION)

    def space(self, mode: str) -> VectorSpace:
        return self.spaces.resolve(self.spaces.mode("u1", mode, {}))[1]

    def location(self, mode: str) -> VectorLocation:
        return VectorLocation(mode=mode, space=self.space(mode).fingerprint.digest)

    async def encode(self, *events: Memory | Remembered | Forgotten) -> list[EncodedMemory]:
        remembered_events = [Remembered(memory=event) if isinstance(event, Memory) else event for event in events]
        return [await self.embed.encode(each, PARTITION) for each in remembered_events]

    async def write(self, *events: Memory | Remembered | Forgotten) -> list[Embedded]:
        return await self.embed.write(await self.encode(*events))

    async def stored_hash(self, memory: Memory, mode: str | None = None) -> str | None:
        """Return the content hash of the stored point, in the memory's mode or another."""
        found = await self.index.hashes(self.space(mode or memory.mode), [memory.memory_id])
        return found.get(memory.memory_id)

    def ready(self, memory: Memory) -> Memory:
        embedding = Embedding(status="ready", place=self.location(memory.mode), content_hash=memory.content_hash)
        return memory.model_copy(update={"embedding": embedding})
