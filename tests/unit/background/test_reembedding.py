"""`Reembedding`: which vectors it requests, and how it yields to new turns."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background.reembedding import MAX_INDEXER_LAG, REEMBEDDING_PAGE_SIZE, Reembedding
from tests.harnesses.worker import HERE, WorkerHarness, change


class ReembeddingHarness(WorkerHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.waiting = 0
        self.declare("code", "tiny32")
        self.reembedding = Reembedding(
            self.embed, self.index, lambda _: self.spaces, self.embedders, lambda: self.waiting, self.ctx
        )

    async def requested_texts(self) -> list[str]:
        texts = {memory.memory_id: memory.text for memory in self.memories.all()}
        requested, restored = await self.reconciled()
        return sorted(texts[memory_id] for memory_id in (*requested, *restored))

    async def reconciled(self) -> tuple[list[str], list[str]]:
        """Return the ids whose vectors are requested by events, and those that were made again at once."""
        before = self.points()
        self.publisher.sent.clear()
        number = await self.reembedding.reconcile(HERE)
        reports = self.embedded_events()
        restored = sorted(point for _, point in self.points() - before)
        assert len(self.publisher.sent) == len(reports) == number - len(restored)
        assert {report.status for report in reports} <= {"stale"}
        return [report.memory_id for report in reports], restored

    def points(self) -> set[tuple[str, str]]:
        found = self.index.collections.values()
        return {(point.content_hash, point.memory_id) for collection in found for point in collection.points.values()}

    def stale(self, memory: Memory) -> None:
        """Mark a record as stale, as `declare_mode` with another embedder does."""
        [_] = list(self.remember.changed(change("stale", mode=memory.mode)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[ReembeddingHarness]:
    worker = ReembeddingHarness(tmp_path)
    yield worker
    worker.words.close()


async def test_complete_vectors_request_nothing(worker: ReembeddingHarness) -> None:
    for offset, mode in enumerate(["code", "general", "code"]):
        await worker.say_embedded(f"turn {offset}", offset, mode=mode)
    assert await worker.requested_texts() == []


async def test_pending_vector_is_not_requested_again(worker: ReembeddingHarness) -> None:
    worker.say("violin", 0)
    assert await worker.requested_texts() == []


async def test_lost_vector_is_made_again_and_its_record_stays(worker: ReembeddingHarness) -> None:
    memories = [
        await worker.say_embedded(text, offset, mode="code") for offset, text in enumerate(["violin", "cello", "drum"])
    ]
    await worker.index.delete(worker.space("code", "tiny32"), [memories[1].memory_id])
    assert await worker.reconciled() == ([], [memories[1].memory_id])
    assert worker.stored(memories[1]) == memories[1]
    assert await worker.reconciled() == ([], [])


async def test_vector_of_another_space_is_requested_by_an_event(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0, mode="code")
    worker.embedders.model("tiny32").change_file()
    assert await worker.reconciled() == ([memory.memory_id], [])
    [report] = worker.embedded_events()
    assert report.content_hash == memory.content_hash
    assert report.mode == "code"
    assert report.status == "stale"
    assert worker.publisher.sent[0].key == b"u1"
    assert worker.remember.embedded(report) is not None
    assert worker.stored(memory).embedding.status == "pending"


async def test_only_incomplete_locations_are_scanned(
    worker: ReembeddingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset, mode in enumerate(["code", "general"]):
        await worker.say_embedded(f"turn {offset}", offset, mode=mode)
    looked_at: list[str] = []
    hashes = worker.index.hashes

    async def noted(space: VectorSpace, ids: Sequence[str]) -> Mapping[str, str]:
        looked_at.append(space.mode)
        return await hashes(space, ids)

    monkeypatch.setattr(worker.index, "hashes", noted)
    assert await worker.requested_texts() == []
    assert looked_at == []
    await worker.index.delete(worker.space("code", "tiny32"), [memory.memory_id for memory in worker.memories.all()])
    assert await worker.requested_texts() == ["turn 0"]
    assert looked_at == ["code"]


async def test_vector_of_another_text_is_requested_again(worker: ReembeddingHarness) -> None:
    changed, other = [await worker.say_embedded(text, offset) for offset, text in enumerate(["violin", "cello"])]
    await worker.index.delete(worker.space("general", "general"), [other.memory_id])
    edited = changed.model_copy(update={"content_hash": "of another text"})
    worker.words.put(HERE, LexicalDocument(edited))
    worker.memories.put(HERE, edited)
    assert await worker.requested_texts() == ["cello", "violin"]


async def test_stale_memory_is_requested_in_its_new_space(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0, mode="code")
    worker.declare("code", "tiny48")
    worker.stale(memory)
    assert await worker.requested_texts() == ["violin"]


async def test_comparison_ahead_of_a_roll_back_finds_the_kept_vectors(worker: ReembeddingHarness) -> None:
    first, second = [await worker.say_embedded(text, offset, mode="code") for offset, text in enumerate(["a b", "c d"])]
    worker.declare("code", "tiny48", former="tiny32")
    list(worker.remember.changed(change("stale", mode="code")))
    for memory in (first, second):
        await worker.embed_memory(worker.stored(memory))
    await worker.index.delete(worker.space("code", "tiny48"), [second.memory_id])
    # The command has written the mode; its changes, which mark the records, are still to come.
    worker.declare("code", "tiny32", former="tiny48")
    assert await worker.reembedding.reconcile(HERE) == 0
    for report in worker.embedded_events():
        worker.remember.embedded(report)
    old, new = (worker.space("code", embedder).fingerprint.digest for embedder in ("tiny32", "tiny48"))
    for memory in (first, second):
        embedding = worker.stored(memory).embedding
        assert embedding.status == "ready"
        assert embedding.space == old
        assert embedding.held == (new,)


async def test_stale_memory_waits_for_its_missing_model(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0, mode="code")
    worker.declare("code", "tiny48")
    worker.stale(memory)
    worker.embedders.missing("tiny48")
    assert await worker.requested_texts() == []
    worker.embedders.load("tiny48")
    assert await worker.requested_texts() == ["violin"]


async def test_waiting_memory_is_requested_once_its_model_is_loaded(worker: ReembeddingHarness) -> None:
    worker.embedders.missing("tiny32")
    memory = await worker.say_embedded("violin", 0, mode="code")
    assert memory.embedding.status == "pending"
    assert memory.embedding.error is not None
    assert await worker.requested_texts() == []
    worker.embedders.load("tiny32")
    assert await worker.requested_texts() == ["violin"]


async def test_memory_of_a_deleted_mode_is_left_to_its_change(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0, mode="code")
    worker.stale(memory)
    worker.modes.put(HERE, "u1", worker.modes.get(HERE, "nobody"))
    assert await worker.requested_texts() == []


async def test_vectors_of_a_changed_embedder_are_requested_again(worker: ReembeddingHarness) -> None:
    await worker.say_embedded("violin", 0, mode="code")
    worker.embedders.model("tiny32").change_file()
    assert await worker.requested_texts() == ["violin"]


async def test_outdated_collection_without_its_model_is_kept(worker: ReembeddingHarness) -> None:
    await worker.say_embedded("violin", 0, mode="code")
    worker.embedders.missing("tiny32")
    assert await worker.requested_texts() == []


async def test_empty_vector_index_is_filled_again_a_page_at_a_time(worker: ReembeddingHarness) -> None:
    memories = [await worker.say_embedded(f"turn {offset}", offset) for offset in range(2 * REEMBEDDING_PAGE_SIZE + 50)]
    await worker.index.delete(worker.space("general", "general"), [memory.memory_id for memory in memories])
    assert len(set(await worker.requested_texts())) == 2 * REEMBEDDING_PAGE_SIZE + 50


async def test_next_page_waits_for_most_of_the_last(
    worker: ReembeddingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def look(seconds: float) -> None:
        nonlocal looks
        looks += seconds > 0
        if looks == 3:
            worker.waiting = MAX_INDEXER_LAG
        await sleep(0)

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", look)
    memory = await worker.say_embedded("violin", 0)
    await worker.index.delete(worker.space("general", "general"), [memory.memory_id])
    worker.waiting = MAX_INDEXER_LAG + 1
    assert await worker.requested_texts() == ["violin"]
    assert looks == 3


async def test_scan_without_requests_does_not_wait(worker: ReembeddingHarness) -> None:
    await worker.say_embedded("violin", 0)
    worker.waiting = MAX_INDEXER_LAG + 1
    assert await worker.requested_texts() == []


async def test_vector_index_is_waited_for(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0)
    await worker.index.delete(worker.space("general", "general"), [memory.memory_id])
    worker.index.down()
    asking = asyncio.create_task(worker.requested_texts())
    await until(lambda: b'what="vector index"' in worker.meters.exposition())
    worker.index.up()
    assert await asking == ["violin"]


async def test_partition_without_memories_needs_nothing(worker: ReembeddingHarness) -> None:
    assert await worker.requested_texts() == []


async def test_reembedding_runs_on_request_and_survives_a_revoked_partition(worker: ReembeddingHarness) -> None:
    memory = await worker.say_embedded("violin", 0)
    await worker.index.delete(worker.space("general", "general"), [memory.memory_id])
    revoked = (HERE + 1) % 4
    running = asyncio.create_task(worker.reembedding.run())
    await asyncio.sleep(0)
    assert not worker.points()
    worker.reembedding.look({revoked, HERE})
    assert worker.reembedding.unfinished() == sorted([revoked, HERE])
    await until(lambda: bool(worker.points()))
    await until(lambda: not worker.reembedding.unfinished())
    await worker.index.delete(worker.space("general", "general"), [memory.memory_id])
    worker.reembedding.look({revoked, HERE})
    await until(lambda: bool(worker.points()))
    assert not running.done()
    running.cancel()


async def test_revoked_partition_does_not_end_reembedding(tmp_path: Path) -> None:
    class Leaving(SqliteLexicalIndex):
        """A lexical index whose partition closes during a scan."""

        def ready_places(self, partition: int) -> Mapping[VectorLocation, int]:
            self.drop(partition)
            return super().ready_places(partition)

    worker = ReembeddingHarness(tmp_path / "worker")
    words = Leaving(tmp_path / "leaving")
    words.open(HERE)
    ctx = replace(worker.ctx, stores=replace(worker.stores, words=words))
    again = Reembedding(worker.embed, worker.index, lambda _: worker.spaces, worker.embedders, lambda: 0, ctx)
    running = asyncio.create_task(again.run())
    again.look({HERE})
    for _ in range(20):
        await asyncio.sleep(0)
    with pytest.raises(KeyError):
        words.has(HERE, "any")
    assert not running.done()
    running.cancel()
    worker.words.close()


@pytest.mark.parametrize("status", ["pending", "stale", "failed"])
async def test_vector_of_an_unready_memory_does_not_hide_missing_ones(
    worker: ReembeddingHarness, status: EmbeddingStatus
) -> None:
    missing, other = [await worker.say_embedded(text, offset) for offset, text in enumerate(["violin", "cello"])]
    left = other.model_copy(update={"embedding": other.embedding.model_copy(update={"status": status})})
    worker.words.put(HERE, LexicalDocument(left))
    worker.memories.put(HERE, left)
    await worker.index.delete(worker.space("general", "general"), [missing.memory_id])
    assert "violin" in await worker.requested_texts()
