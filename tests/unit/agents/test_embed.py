"""The indexer: records in, points and news out."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.embed import LONGEST_ERROR, Embed, Vectored
from agents.ports import Embedder
from agents.rules.versions import identity, next_memory
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.modes import VectorSpace
from schemas.moments import moment_of
from schemas.vectors import Encoded, Point
from tests.fake_clock import FakeClock
from tests.fake_embedder import FakeEmbedder
from tests.fake_index import FakeIndex
from tests.made_turns import TIMESTAMP_MS, turn


def remembered(text: str, turn_id: str = "t", mode: str = "general") -> Memory:
    said = turn(text, turn_id=turn_id)
    return next_memory(said, identity(said, moment_of(TIMESTAMP_MS)), None, (mode, "caller"), 0)


class PickyEmbedder(FakeEmbedder):
    """Can't take `unspeakable`, and makes no numbers of `infinite`."""

    async def passage(self, text: str) -> Encoded:
        """Embed what can be."""
        if text == "unspeakable":
            raise ValueError("x" * 1000)
        encoded = await super().passage(text)
        if text == "infinite":
            return Encoded(np.full_like(encoded.pooled, np.inf), encoded.tokens)
        return encoded


class CountingIndex(FakeIndex):
    """Counts what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.upserts: list[list[str]] = []

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Note the ids, and write."""
        self.upserts.append([point.memory_id for point in points])
        await super().upsert(space, points)


class Indexer:
    """The indexer with two modes."""

    def __init__(self) -> None:
        self.embedder = PickyEmbedder()
        self.other = FakeEmbedder("other", dim=8)
        self.index = CountingIndex()
        self.clock = FakeClock()
        self.embed = Embed(self.of, self.index, self.clock)

    def of(self, mode: str) -> tuple[Embedder, VectorSpace]:
        """The embedder and space of a mode."""
        embedder = self.other if mode == "code" else self.embedder
        return embedder, VectorSpace(mode, embedder.fingerprint)

    async def encoded(self, *memories: Memory) -> list[Vectored]:
        """Their vectors."""
        return [await self.embed.encode(memory, 1) for memory in memories]

    async def hash_of(self, memory: Memory) -> str | None:
        """The content hash of the point that is in the index."""
        return (await self.index.hashes(self.of(memory.mode)[1], [memory.memory_id])).get(memory.memory_id)


@pytest.fixture
def indexer() -> Indexer:
    return Indexer()


async def test_a_memory_is_in_the_index_and_told_as_ready(indexer: Indexer) -> None:
    memory = remembered("violin")
    [said] = await indexer.embed.write(await indexer.encoded(memory))
    assert (said.memory_id, said.content_hash, said.status) == (memory.memory_id, memory.content_hash, "ready")
    assert (said.space, said.at) == (indexer.embedder.fingerprint.digest, indexer.clock.now())
    assert await indexer.hash_of(memory) == memory.content_hash
    assert await indexer.index.count(indexer.of("general")[1], 1) == 1


async def test_a_text_that_the_model_cannot_take_fails_alone_with_a_short_reason(indexer: Indexer) -> None:
    good, bad = remembered("violin", "a"), remembered("unspeakable", "b")
    said = await indexer.embed.write(await indexer.encoded(good, bad))
    assert [one.status for one in said] == ["ready", "failed"]
    assert (said[1].error or "").startswith("ValueError: x")
    assert len(said[1].error or "") == LONGEST_ERROR
    assert await indexer.hash_of(bad) is None


async def test_a_vector_that_the_index_refuses_fails_alone(indexer: Indexer) -> None:
    memories = [remembered(text, text) for text in ("violin", "infinite", "cello")]
    said = await indexer.embed.write(await indexer.encoded(*memories))
    assert [(one.memory_id, one.status) for one in said] == [
        (memory.memory_id, status) for memory, status in zip(memories, ("ready", "failed", "ready"), strict=True)
    ]
    assert [await indexer.hash_of(memory) is not None for memory in memories] == [True, False, True]


async def test_a_batch_is_one_write(indexer: Indexer) -> None:
    memories = [remembered(text, text) for text in ("violin", "cello", "drum")]
    await indexer.embed.write(await indexer.encoded(*memories))
    assert indexer.index.upserts == [[memory.memory_id for memory in memories]]


async def test_news_come_in_the_order_of_the_batch_whatever_the_modes(indexer: Indexer) -> None:
    memories = [remembered(str(n), str(n), mode) for n, mode in enumerate(["general", "code", "general", "code"])]
    said = await indexer.embed.write(await indexer.encoded(*memories))
    assert [one.memory_id for one in said] == [memory.memory_id for memory in memories]
    assert [one.space for one in said] == [indexer.of(memory.mode)[1].fingerprint.digest for memory in memories]


async def test_of_two_versions_in_one_batch_the_later_one_stays(indexer: Indexer) -> None:
    old, new = remembered("violin"), remembered("cello")
    said = await indexer.embed.write(await indexer.encoded(old, new))
    assert [one.content_hash for one in said] == [old.content_hash, new.content_hash]
    assert await indexer.hash_of(new) == new.content_hash


async def test_of_two_versions_the_later_one_stays_beside_a_vector_that_is_refused(indexer: Indexer) -> None:
    old, bad, new = remembered("violin"), remembered("infinite", "b"), remembered("cello")
    said = await indexer.embed.write(await indexer.encoded(old, bad, new))
    assert [one.status for one in said] == ["ready", "failed", "ready"]
    assert await indexer.hash_of(new) == new.content_hash


async def test_a_model_that_is_away_is_no_failure_of_the_text(indexer: Indexer) -> None:
    indexer.embedder.outage = True
    with pytest.raises(Unavailable):
        await indexer.encoded(remembered("violin"))


async def test_an_index_that_is_away_is_no_failure_of_the_text(indexer: Indexer) -> None:
    vectored = await indexer.encoded(remembered("violin"), remembered("unspeakable", "b"))
    indexer.index.down()
    with pytest.raises(Unavailable):
        await indexer.embed.write(vectored)
    indexer.index.up()
    assert [one.status for one in await indexer.embed.write(vectored)] == ["ready", "failed"]


async def test_nothing_is_written_for_an_empty_batch(indexer: Indexer) -> None:
    assert await indexer.embed.write([]) == []
    assert indexer.index.upserts == []
