"""The indexer: records in, points and news out."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.embed import LONGEST_ERROR, Embed, Vectored
from agents.mode_spaces import ModeSpaces
from agents.ports import Embedder
from agents.rules.versions import identity, moved, next_memory
from schemas.events import Embedded, Forgotten, Remembered
from schemas.failures import Unavailable
from schemas.memories import Embedding, Memory, Place
from schemas.modes import GENERAL, Declared, Mode, VectorSpace
from schemas.moments import moment_of
from schemas.vectors import Encoded, Point
from tests.fake_clock import FakeClock
from tests.fake_embedders import FakeEmbedders
from tests.fake_index import FakeIndex
from tests.fake_modes import FakeModes
from tests.made_turns import TIMESTAMP_MS, turn

PARTITION = 1


def remembered(text: str, turn_id: str = "t", mode: str = "general") -> Memory:
    said = turn(text, turn_id=turn_id)
    return next_memory(said, identity(said, moment_of(TIMESTAMP_MS)), None, (mode, "caller"), 0, asks_model=False)


class PickyEmbedder:
    """Can't take `unspeakable`, and makes no numbers of `infinite`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fingerprint = embedder.fingerprint
        self.query = embedder.query

    async def passage(self, text: str) -> Encoded:
        """Embed what can be."""
        if text == "unspeakable":
            raise ValueError("x" * 1000)
        encoded = await self._embedder.passage(text)
        if text == "infinite":
            return Encoded(np.full_like(encoded.pooled, np.inf), encoded.tokens)
        return encoded


class PickyEmbedders(FakeEmbedders):
    """All of them picky."""

    def of(self, mode: Mode) -> Embedder:
        """The embedder of a mode."""
        return PickyEmbedder(super().of(mode))


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
    """The indexer with modes of its user: two of them share a space."""

    def __init__(self) -> None:
        self.modes, self.embedders = FakeModes(), PickyEmbedders()
        self.index = CountingIndex()
        self.clock = FakeClock()
        self.spaces = ModeSpaces(self.modes, self.embedders)
        self.embed = Embed(self.spaces, self.index, self.clock)
        for name, embedder, dim in (("code", "tiny32", 32), ("notes", GENERAL, 384)):
            mode = Mode(name=name, embedder=embedder, embedding_dim=dim)
            self.modes.declare(mode, boundary="u1", partition=PARTITION)

    def of(self, mode: str) -> VectorSpace:
        """The space of a mode."""
        return self.spaces.opened(self.spaces.mode(PARTITION, "u1", mode, {}))[1]

    def place(self, mode: str) -> Place:
        """Where a mode's vectors lie."""
        return Place(mode=mode, space=self.of(mode).fingerprint.digest)

    async def encoded(self, *events: Memory | Remembered | Forgotten) -> list[Vectored]:
        """Their vectors."""
        told = [Remembered(memory=one) if isinstance(one, Memory) else one for one in events]
        return [await self.embed.encode(one, PARTITION) for one in told]

    async def written(self, *events: Memory | Remembered | Forgotten) -> list[Embedded]:
        """What is said when they are written in one batch."""
        return await self.embed.write(await self.encoded(*events))

    async def hash_of(self, memory: Memory, mode: str | None = None) -> str | None:
        """The content hash of the point that is in the index, in the memory's mode or another."""
        found = await self.index.hashes(self.of(mode or memory.mode), [memory.memory_id])
        return found.get(memory.memory_id)

    def ready(self, memory: Memory) -> Memory:
        """The record as it is when its vector is in the index."""
        embedding = Embedding(status="ready", place=self.place(memory.mode), content_hash=memory.content_hash)
        return memory.model_copy(update={"embedding": embedding})


@pytest.fixture
def indexer() -> Indexer:
    return Indexer()


async def test_a_memory_is_in_the_index_and_told_as_ready(indexer: Indexer) -> None:
    memory = remembered("violin")
    [said] = await indexer.embed.write(await indexer.encoded(memory))
    assert (said.memory_id, said.content_hash, said.status) == (memory.memory_id, memory.content_hash, "ready")
    assert (said.mode, said.space, said.at) == ("general", indexer.place("general").space, indexer.clock.now())
    assert await indexer.hash_of(memory) == memory.content_hash
    assert await indexer.index.count(indexer.of("general"), PARTITION) == 1


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


async def test_modes_are_written_apart_and_news_come_in_the_order_of_the_batch(indexer: Indexer) -> None:
    memories = [remembered(str(n), str(n), mode) for n, mode in enumerate(["general", "code", "general", "code"])]
    said = await indexer.embed.write(await indexer.encoded(*memories))
    assert [one.memory_id for one in said] == [memory.memory_id for memory in memories]
    assert [one.space for one in said] == [indexer.place(memory.mode).space for memory in memories]


async def test_of_two_versions_in_one_batch_the_later_one_alone_is_written_and_told(indexer: Indexer) -> None:
    old, new = remembered("violin"), remembered("cello")
    said = await indexer.embed.write(await indexer.encoded(old, new))
    assert [one.content_hash for one in said] == [new.content_hash]
    assert indexer.index.upserts == [[new.memory_id]]
    assert await indexer.hash_of(new) == new.content_hash


async def test_of_two_versions_the_later_one_stays_beside_a_vector_that_is_refused(indexer: Indexer) -> None:
    old, bad, new = remembered("violin"), remembered("infinite", "b"), remembered("cello")
    said = await indexer.embed.write(await indexer.encoded(old, bad, new))
    assert {one.memory_id: one.status for one in said} == {new.memory_id: "ready", bad.memory_id: "failed"}
    assert await indexer.hash_of(new) == new.content_hash


async def test_a_model_that_is_away_is_no_failure_of_the_text(indexer: Indexer) -> None:
    indexer.embedders.model("general").outage = True
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


async def test_a_memory_whose_model_is_not_loaded_waits_and_delays_nobody(indexer: Indexer) -> None:
    indexer.embedders.missing("tiny32")
    waits, goes = remembered("violin", "a", "code"), remembered("cello", "b")
    said = {one.memory_id: one for one in await indexer.written(waits, goes)}
    assert (said[waits.memory_id].status, said[waits.memory_id].space) == ("waiting", None)
    assert "missing" in (said[waits.memory_id].error or "")
    assert said[goes.memory_id].status == "ready"


async def test_a_memory_in_a_language_whose_model_is_not_loaded_waits_and_delays_nobody(indexer: Indexer) -> None:
    indexer.embedders.missing("multilingual-small")
    waits, goes = remembered("Der Hund schläft im Garten.", "a"), remembered("The dog sleeps.", "b")
    said = {one.memory_id: one for one in await indexer.written(waits, goes)}
    assert (said[waits.memory_id].status, said[waits.memory_id].space) == ("waiting", None)
    assert said[goes.memory_id].status == "ready"


async def test_a_memory_of_a_mode_that_is_gone_waits_for_what_becomes_of_it(indexer: Indexer) -> None:
    [said] = await indexer.written(remembered("violin", mode="gone"))
    assert (said.status, said.mode, said.space) == ("waiting", "gone", None)


async def test_a_memory_that_moves_into_another_space_is_embedded_there_and_leaves_nothing_behind(
    indexer: Indexer,
) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = moved(indexer.ready(memory), ("code", "model"))
    [said] = await indexer.written(there)
    assert (said.mode, said.space, said.status) == ("code", indexer.place("code").space, "ready")
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)


async def test_a_memory_that_moves_within_a_space_takes_its_vectors_along(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    model = indexer.embedders.model("general")
    model.outage = True
    there = moved(indexer.ready(memory), ("notes", "model"))
    [said] = await indexer.written(there)
    assert (said.mode, said.status) == ("notes", "ready")
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)
    kept = (await indexer.index.vectors(indexer.of("notes"), [memory.memory_id]))[memory.memory_id]
    model.outage = False
    fresh = await model.passage("violin")
    assert np.allclose(kept.pooled, fresh.pooled, atol=1e-6)
    assert kept.tokens.tolist() == fresh.tokens.tolist() != []


async def test_a_vector_of_another_text_is_not_taken_along(indexer: Indexer) -> None:
    old, new = remembered("violin"), remembered("cello")
    await indexer.written(new)
    await indexer.written(old)
    await indexer.written(moved(indexer.ready(new), ("notes", "model")))
    vectors = await indexer.index.vectors(indexer.of("notes"), [new.memory_id])
    fresh = (await indexer.embedders.model("general").passage("cello")).pooled
    assert np.allclose(vectors[new.memory_id].pooled, fresh, atol=1e-6)


async def test_a_vector_that_is_not_there_any_more_is_made_again(indexer: Indexer) -> None:
    there = moved(indexer.ready(remembered("violin")), ("notes", "model"))
    [said] = await indexer.written(there)
    assert said.status == "ready"
    assert await indexer.hash_of(there) == there.content_hash


@pytest.mark.parametrize("mode", ["notes", "code"])
async def test_a_move_that_comes_twice_leaves_one_vector(indexer: Indexer, mode: str) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = moved(indexer.ready(memory), (mode, "model"))
    await indexer.written(there)
    await indexer.written(there)
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)


async def test_there_and_back_in_one_batch_is_where_it_was(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = moved(indexer.ready(memory), ("code", "model"))
    said = await indexer.written(there, moved(there, ("general", "model")))
    assert [(one.mode, one.status) for one in said] == [("general", "ready")]
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (memory.content_hash, None)


async def test_a_forgotten_memory_has_no_vector_left_and_nothing_is_said_of_it(indexer: Indexer) -> None:
    memory, other = remembered("violin"), remembered("cello", "b")
    await indexer.written(memory, other)
    gone = Forgotten(memory_id=memory.memory_id, places=(indexer.place("general"),))
    assert await indexer.written(gone) == []
    assert (await indexer.hash_of(memory), await indexer.hash_of(other)) == (None, other.content_hash)


async def test_a_memory_that_is_forgotten_on_its_way_is_not_written(indexer: Indexer) -> None:
    memory = remembered("violin")
    assert await indexer.written(memory, Forgotten(memory_id=memory.memory_id, places=())) == []
    assert await indexer.hash_of(memory) is None


async def test_what_a_killed_worker_had_written_and_not_told_is_removed_with_what_came_after(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    await indexer.written(memory, Forgotten(memory_id=memory.memory_id, places=()))
    assert await indexer.hash_of(memory) is None


async def test_strays_are_removed_and_the_vector_that_belongs_there_is_not(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory, memory.model_copy(update={"mode": "code"}))
    strays = (indexer.place("general"), indexer.place("code"), Place(mode="never", space="was"))
    await indexer.written(Remembered(memory=memory, strays=strays))
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (memory.content_hash, None)


@pytest.mark.parametrize("text", ["unspeakable", "infinite"])
async def test_a_text_without_a_vector_does_not_leave_the_vector_of_the_text_before(
    indexer: Indexer, text: str
) -> None:
    old = remembered("violin")
    await indexer.written(old)
    new = remembered(text).model_copy(update={"embedding": Embedding(place=indexer.place("general"))})
    [said] = await indexer.written(new)
    assert (said.status, await indexer.hash_of(new)) == ("failed", None)


async def test_an_index_that_goes_away_in_between_leaves_what_is_to_be_done_the_same(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = await indexer.encoded(moved(indexer.ready(memory), ("code", "model")))
    indexer.index.down()
    with pytest.raises(Unavailable):
        await indexer.embed.write(there)
    with pytest.raises(Unavailable):
        await indexer.encoded(moved(indexer.ready(memory), ("notes", "model")))
    indexer.index.up()
    await indexer.embed.write(there)
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (None, memory.content_hash)


async def test_a_mode_that_is_declared_while_memories_come_holds_from_the_next_one_on(indexer: Indexer) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    anew = Mode(name="general", embedder="tiny48", embedding_dim=48)
    before = indexer.place("general")
    indexer.modes.declare(anew, boundary="u1", partition=PARTITION)
    [said] = await indexer.written(memory.model_copy(update={"embedding": Embedding(place=before)}))
    assert said.space == indexer.place("general").space != before.space
    kept = await indexer.index.spaces()
    old = VectorSpace("general", kept[f"general-{before.space}"])
    assert await indexer.index.count(old, PARTITION) == 0


@pytest.mark.parametrize("embedder", ["tiny48", None])
async def test_what_a_killed_worker_had_written_is_removed_though_its_mode_has_changed_or_is_gone(
    indexer: Indexer, embedder: str | None
) -> None:
    memory, bystander = remembered("violin", mode="code"), remembered("cello", "b", mode="code")
    before = indexer.of("code")
    await indexer.written(memory, bystander)
    # Nobody was told of the first. Then a command was carried out, and its event comes again.
    modes = [Mode(name="code", embedder=embedder, embedding_dim=48)] if embedder else []
    indexer.modes.put(PARTITION, "u1", Declared(modes=tuple(modes)))
    [said] = await indexer.written(memory)
    assert said.status == ("ready" if embedder else "waiting")
    assert list(await indexer.index.hashes(before, [memory.memory_id, bystander.memory_id])) == [bystander.memory_id]
    assert not embedder or await indexer.hash_of(memory) == memory.content_hash


async def test_what_a_killed_worker_had_written_is_removed_when_its_memory_moved_on_in_the_same_batch(
    indexer: Indexer,
) -> None:
    memory = remembered("violin", mode="code")
    before = indexer.of("code")
    await indexer.written(memory)
    indexer.modes.put(PARTITION, "u1", Declared())
    moved_on = memory.model_copy(update={"mode": GENERAL})
    await indexer.written(memory, moved_on)
    assert await indexer.index.hashes(before, [memory.memory_id]) == {}
    assert await indexer.hash_of(moved_on) == memory.content_hash
