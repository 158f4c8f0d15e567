"""`RestoreVectors`: what is written, what is left to events, and what a failure costs."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.internal.events import Remembered
from schemas.models.vectors import Point
from schemas.state.memories import Memory
from schemas.state.modes import VectorSpace
from streams.flow.background.reembedding import MAX_ENCODING, WRITE_BATCH, RestoreVectors
from tests.fakes.vector_index import FakeIndex
from tests.harnesses.worker import HERE, WorkerHarness


class SlowIndex(FakeIndex):
    """An index whose first write waits for `go_on`; its writes fail `failures` times, the point `refused` always."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.reached = asyncio.Event()
        self.failures = 0
        self.refused = ""

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.go_on.wait()
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        if any(point.memory_id == self.refused for point in points):
            raise ValueError(self.refused)
        await super().upsert(space, points)


class RestoringHarness(WorkerHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.slow = self.index = SlowIndex()
        self.embed = Embed(lambda _: self.spaces, self.index, self.clock)

    async def lost(self, *texts: str) -> list[Memory]:
        memories = [await self.say_embedded(text, offset) for offset, text in enumerate(texts)]
        self.index.collections.clear()
        self.slow.reached.clear()
        self.publisher.sent.clear()
        return memories

    async def restore(self, memories: Sequence[Memory]) -> int:
        async def each() -> AsyncIterator[Memory]:
            for memory in memories:
                yield memory

        return await RestoreVectors(self.embed, HERE, self.ctx).run(each())

    async def stored_hashes(self, memories: Sequence[Memory]) -> list[str | None]:
        found = await self.index.hashes(self.space("general", "general"), [memory.memory_id for memory in memories])
        return [found.get(memory.memory_id) for memory in memories]

    def edit(self, memory: Memory) -> None:
        """Give the record another text, as a later turn does."""
        edited = memory.model_copy(update={"content_hash": "of another text"})
        self.words.put(HERE, LexicalDocument(edited))
        self.memories.put(HERE, edited)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[RestoringHarness]:
    worker = RestoringHarness(tmp_path)
    yield worker
    worker.words.close()


async def test_every_vector_is_there_again_without_an_event(worker: RestoringHarness) -> None:
    memories = await worker.lost(*(f"turn {number}" for number in range(3 * MAX_ENCODING)))
    assert await worker.restore(memories) == len(memories)
    assert await worker.stored_hashes(memories) == [memory.content_hash for memory in memories]
    assert worker.publisher.sent == []
    assert b'modestream_embedded_total{status="ready"} %.1f' % len(memories) in worker.meters.exposition()


async def test_vectors_that_come_while_others_are_written_are_not_lost(
    worker: RestoringHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = await worker.lost(*(f"turn {number}" for number in range(2 * WRITE_BATCH)))
    encode = worker.embed.encode_lost

    async def take_a_while(memory: Memory, partition: int) -> EncodedMemory:
        await asyncio.sleep(0.001 * (len(memory.text) % 2))
        return await encode(memory, partition)

    monkeypatch.setattr(worker.embed, "encode_lost", take_a_while)
    await worker.restore(memories)
    assert None not in await worker.stored_hashes(memories)


async def test_memory_that_changes_meanwhile_is_left_to_its_event(worker: RestoringHarness) -> None:
    changed, other = memories = await worker.lost("violin", "cello")
    worker.slow.failures = 1
    worker.slow.go_on.clear()
    restoring = asyncio.create_task(worker.restore(memories))
    await worker.slow.reached.wait()
    worker.edit(changed)
    worker.slow.go_on.set()
    await restoring
    assert await worker.stored_hashes(memories) == [None, other.content_hash]


async def test_vector_of_a_later_text_is_written_after_the_restored_one(worker: RestoringHarness) -> None:
    [memory] = memories = await worker.lost("violin")
    worker.slow.go_on.clear()
    restoring = asyncio.create_task(worker.restore(memories))
    await worker.slow.reached.wait()
    edited = worker.say("cello", 1, turn_id="violin")
    encoded = await worker.embed.encode(Remembered(memory=edited), HERE)
    writing = asyncio.create_task(worker.embed.write([encoded]))
    await asyncio.sleep(0)
    worker.slow.go_on.set()
    await asyncio.gather(restoring, writing)
    assert memory.memory_id == edited.memory_id
    assert await worker.stored_hashes(memories) == [edited.content_hash]


async def test_restored_vectors_of_one_partition_delay_no_other(worker: RestoringHarness) -> None:
    memories = await worker.lost("violin")
    worker.slow.go_on.clear()
    restoring = asyncio.create_task(worker.restore(memories))
    await worker.slow.reached.wait()
    later = worker.say("cello", 1)
    elsewhere = await worker.embed.encode(Remembered(memory=later), HERE + 1)
    await asyncio.wait_for(worker.embed.write([elsewhere]), 5)
    assert await worker.stored_hashes([*memories, later]) == [None, later.content_hash]
    worker.slow.go_on.set()
    await restoring
    assert await worker.stored_hashes(memories) == [memories[0].content_hash]


async def test_forgotten_memory_gets_no_vector(worker: RestoringHarness) -> None:
    [memory] = memories = await worker.lost("violin")
    worker.memories.forget(HERE, memory.memory_id)
    await worker.restore(memories)
    assert await worker.stored_hashes(memories) == [None]


async def test_refused_vector_is_reported_as_failed(worker: RestoringHarness) -> None:
    good, bad = memories = await worker.lost("violin", "cello")
    worker.slow.refused = bad.memory_id
    await worker.restore(memories)
    [report] = worker.embedded_events()
    assert report.memory_id == bad.memory_id
    assert report.status == "failed"
    assert await worker.stored_hashes(memories) == [good.content_hash, None]


async def test_partition_that_has_left_ends_it(worker: RestoringHarness) -> None:
    [memory] = await worker.lost("violin")

    async def leaving() -> AsyncIterator[Memory]:
        yield memory
        raise KeyError(HERE)

    with pytest.raises(KeyError):
        await RestoreVectors(worker.embed, HERE, worker.ctx).run(leaving())
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
