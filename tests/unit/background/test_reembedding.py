"""Which vectors are made again, and that new turns are not held up by it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import EmbeddingStatus, Memory, VectorLocation
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background.reembedding import MAX_INDEXER_LAG, REEMBEDDING_PAGE_SIZE, Reembedding
from tests.harnesses.worker import HERE, WorkerHarness, change


class ReembeddingHarness(WorkerHarness):
    """A worker whose indexer has `waiting` events before it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.waiting = 0
        self.declare("code", "tiny32")
        self.reembedding = Reembedding(
            self.index, lambda _: self.spaces, self.embedders, lambda: self.waiting, self.ctx
        )

    async def asks(self) -> list[str]:
        """The texts whose vectors are asked for, and nothing else is said."""
        self.publisher.sent.clear()
        number = await self.reembedding.reconcile(HERE)
        said = self.asked()
        assert len(self.publisher.sent) == len(said) == number
        assert {one.status for one in said} <= {"stale"}
        texts = {memory.memory_id: memory.text for memory in self.memories.all()}
        return sorted(texts[one.memory_id] for one in said)

    def stale(self, memory: Memory) -> None:
        """What `declare_mode` with another embedder makes of a record."""
        [_] = list(self.remember.changed(change("stale", mode=memory.mode)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ReembeddingHarness]:
    home = ReembeddingHarness(tmp_path)
    yield home
    home.words.close()


async def test_where_every_vector_is_as_it_should_be_nothing_is_asked_for(home: ReembeddingHarness) -> None:
    for offset, mode in enumerate(["code", "general", "code"]):
        await home.told(f"turn {offset}", offset, mode=mode)
    assert await home.asks() == []


async def test_a_vector_that_is_on_its_way_is_left_alone(home: ReembeddingHarness) -> None:
    home.tell("violin", 0)
    assert await home.asks() == []


async def test_a_vector_that_is_missing_is_asked_for_and_the_keeper_has_it_made(home: ReembeddingHarness) -> None:
    memories = [await home.told(text, offset, mode="code") for offset, text in enumerate(["violin", "cello", "drum"])]
    await home.index.delete(home.space("code", "tiny32"), [memories[1].memory_id])
    assert await home.asks() == ["cello"]
    [said] = home.asked()
    assert (said.content_hash, said.mode, said.status) == (memories[1].content_hash, "code", "stale")
    assert home.publisher.sent[0].key == b"u1"
    assert home.remember.embedded(said) is not None
    assert home.kept(memories[1]).embedding.status == "pending"


async def test_only_the_place_where_one_is_missing_is_looked_at_one_by_one(
    home: ReembeddingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset, mode in enumerate(["code", "general"]):
        await home.told(f"turn {offset}", offset, mode=mode)
    looked_at: list[str] = []
    hashes = home.index.hashes

    async def noted(space: VectorSpace, ids: Sequence[str]) -> Mapping[str, str]:
        looked_at.append(space.mode)
        return await hashes(space, ids)

    monkeypatch.setattr(home.index, "hashes", noted)
    assert await home.asks() == []
    assert looked_at == []
    await home.index.delete(home.space("code", "tiny32"), [memory.memory_id for memory in home.memories.all()])
    assert await home.asks() == ["turn 0"]
    assert looked_at == ["code"]


async def test_a_vector_of_another_text_is_no_vector(home: ReembeddingHarness) -> None:
    kept, other = [await home.told(text, offset) for offset, text in enumerate(["violin", "cello"])]
    await home.index.delete(home.space("general", "general"), [other.memory_id])
    edited = kept.model_copy(update={"content_hash": "of another text"})
    home.words.put(HERE, LexicalDocument(edited))
    home.memories.put(HERE, edited)
    assert await home.asks() == ["cello", "violin"]


async def test_a_stale_memory_is_asked_for_in_its_new_space(home: ReembeddingHarness) -> None:
    memory = await home.told("violin", 0, mode="code")
    home.declare("code", "tiny48")
    home.stale(memory)
    assert await home.asks() == ["violin"]


async def test_a_stale_memory_whose_model_is_missing_waits_for_it(home: ReembeddingHarness) -> None:
    memory = await home.told("violin", 0, mode="code")
    home.declare("code", "tiny48")
    home.stale(memory)
    home.embedders.missing("tiny48")
    assert await home.asks() == []
    home.embedders.load("tiny48")
    assert await home.asks() == ["violin"]


async def test_waiting_memory_is_requested_once_its_model_is_loaded(home: ReembeddingHarness) -> None:
    home.embedders.missing("tiny32")
    memory = await home.told("violin", 0, mode="code")
    assert (memory.embedding.status, memory.embedding.error is None) == ("pending", False)
    assert await home.asks() == []
    home.embedders.load("tiny32")
    assert await home.asks() == ["violin"]


async def test_memory_of_a_deleted_mode_is_left_to_the_change_that_moves_it(home: ReembeddingHarness) -> None:
    memory = await home.told("violin", 0, mode="code")
    home.stale(memory)
    home.modes.put(HERE, "u1", home.modes.get(HERE, "nobody"))
    assert await home.asks() == []


async def test_vectors_of_an_embedder_that_makes_others_today_are_asked_for_anew(home: ReembeddingHarness) -> None:
    await home.told("violin", 0, mode="code")
    model = home.embedders.model("tiny32")
    model._fingerprint = model.fingerprint.model_copy(update={"file_sha256": "another file"})
    assert await home.asks() == ["violin"]


async def test_an_outdated_collection_whose_model_is_missing_is_left_alone(home: ReembeddingHarness) -> None:
    await home.told("violin", 0, mode="code")
    home.embedders.missing("tiny32")
    assert await home.asks() == []


async def test_an_empty_vector_index_is_filled_again_a_page_at_a_time(home: ReembeddingHarness) -> None:
    memories = [await home.told(f"turn {offset}", offset) for offset in range(2 * REEMBEDDING_PAGE_SIZE + 50)]
    await home.index.delete(home.space("general", "general"), [memory.memory_id for memory in memories])
    assert len(set(await home.asks())) == 2 * REEMBEDDING_PAGE_SIZE + 50


async def test_the_next_page_waits_until_the_indexer_has_done_most_of_the_last(
    home: ReembeddingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def look(seconds: float) -> None:
        nonlocal looks
        looks += seconds > 0
        if looks == 3:
            home.waiting = MAX_INDEXER_LAG
        await sleep(0)

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", look)
    memory = await home.told("violin", 0)
    await home.index.delete(home.space("general", "general"), [memory.memory_id])
    home.waiting = MAX_INDEXER_LAG + 1
    assert await home.asks() == ["violin"]
    assert looks == 3


async def test_nothing_to_be_asked_does_not_wait_for_the_indexer(home: ReembeddingHarness) -> None:
    await home.told("violin", 0)
    home.waiting = MAX_INDEXER_LAG + 1
    assert await home.asks() == []


async def test_the_vector_index_is_waited_for(home: ReembeddingHarness) -> None:
    memory = await home.told("violin", 0)
    await home.index.delete(home.space("general", "general"), [memory.memory_id])
    home.index.down()
    asking = asyncio.create_task(home.asks())
    await until(lambda: b'what="vector index"' in home.meters.exposition())
    home.index.up()
    assert await asking == ["violin"]


async def test_a_partition_without_memories_needs_nothing(home: ReembeddingHarness) -> None:
    assert await home.asks() == []


async def test_reembedding_runs_on_request_and_survives_a_revoked_partition(home: ReembeddingHarness) -> None:
    memory = await home.told("violin", 0)
    await home.index.delete(home.space("general", "general"), [memory.memory_id])
    gone = (HERE + 1) % 4
    running = asyncio.create_task(home.reembedding.run())
    await asyncio.sleep(0)
    assert home.asked() == []
    home.reembedding.look({gone, HERE})
    await until(lambda: bool(home.asked()))
    home.publisher.sent.clear()
    home.reembedding.look({gone, HERE})
    await until(lambda: bool(home.asked()))
    assert not running.done()
    running.cancel()


async def test_a_partition_that_leaves_while_it_is_gone_through_ends_nothing(tmp_path: Path) -> None:
    class Leaving(SqliteLexicalIndex):
        """A word index whose partition is closed while its memories are looked at."""

        def ready_places(self, partition: int) -> Mapping[VectorLocation, int]:
            self.drop(partition)
            return super().ready_places(partition)

    home = ReembeddingHarness(tmp_path / "home")
    words = Leaving(tmp_path / "leaving")
    words.open(HERE)
    ctx = replace(home.ctx, stores=replace(home.stores, words=words))
    again = Reembedding(home.index, lambda _: home.spaces, home.embedders, lambda: 0, ctx)
    running = asyncio.create_task(again.run())
    again.look({HERE})
    for _ in range(20):
        await asyncio.sleep(0)
    with pytest.raises(KeyError):
        words.applied(HERE)
    assert not running.done()
    running.cancel()
    home.words.close()


@pytest.mark.parametrize("status", ["pending", "stale", "failed"])
async def test_vector_of_an_unready_memory_does_not_hide_missing_ones(
    home: ReembeddingHarness, status: EmbeddingStatus
) -> None:
    missing, other = [await home.told(text, offset) for offset, text in enumerate(["violin", "cello"])]
    left = other.model_copy(update={"embedding": other.embedding.model_copy(update={"status": status})})
    home.words.put(HERE, LexicalDocument(left))
    home.memories.put(HERE, left)
    await home.index.delete(home.space("general", "general"), [missing.memory_id])
    assert "violin" in await home.asks()
