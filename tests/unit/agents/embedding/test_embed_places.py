"""The indexer: vectors that move with their memories, go with them, and are left behind nowhere."""

import numpy as np
import pytest

from agents.rules.memory.versions import move_to_mode
from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.memories import Embedding, VectorLocation
from schemas.state.modes import GENERAL, Mode, ModeDeclarations, VectorSpace
from tests.harnesses.embed import PARTITION, EmbedHarness, remembered


async def test_moved_memory_is_embedded_in_the_new_space_and_leaves_the_old(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = move_to_mode(indexer.ready(memory), ("code", "model"))
    [said] = await indexer.written(there)
    assert (said.mode, said.space, said.status) == ("code", indexer.place("code").space, "ready")
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)


async def test_a_memory_that_moves_within_a_space_takes_its_vectors_along(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    model = indexer.embedders.model("general")
    model.outage = True
    there = move_to_mode(indexer.ready(memory), ("notes", "model"))
    [said] = await indexer.written(there)
    assert (said.mode, said.status) == ("notes", "ready")
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)
    kept = (await indexer.index.vectors(indexer.of("notes"), [memory.memory_id]))[memory.memory_id]
    model.outage = False
    fresh = await model.passage("violin")
    assert np.allclose(kept.pooled, fresh.pooled, atol=1e-6)
    assert kept.tokens.tolist() == fresh.tokens.tolist() != []


async def test_a_vector_of_another_text_is_not_taken_along(indexer: EmbedHarness) -> None:
    old, new = remembered("violin"), remembered("cello")
    await indexer.written(new)
    await indexer.written(old)
    await indexer.written(move_to_mode(indexer.ready(new), ("notes", "model")))
    vectors = await indexer.index.vectors(indexer.of("notes"), [new.memory_id])
    fresh = (await indexer.embedders.model("general").passage("cello")).pooled
    assert np.allclose(vectors[new.memory_id].pooled, fresh, atol=1e-6)


async def test_a_vector_that_is_not_there_any_more_is_made_again(indexer: EmbedHarness) -> None:
    there = move_to_mode(indexer.ready(remembered("violin")), ("notes", "model"))
    [said] = await indexer.written(there)
    assert said.status == "ready"
    assert await indexer.hash_of(there) == there.content_hash


@pytest.mark.parametrize("mode", ["notes", "code"])
async def test_a_move_that_comes_twice_leaves_one_vector(indexer: EmbedHarness, mode: str) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = move_to_mode(indexer.ready(memory), (mode, "model"))
    await indexer.written(there)
    await indexer.written(there)
    assert (await indexer.hash_of(there), await indexer.hash_of(memory)) == (memory.content_hash, None)


async def test_there_and_back_in_one_batch_is_where_it_was(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = move_to_mode(indexer.ready(memory), ("code", "model"))
    said = await indexer.written(there, move_to_mode(there, ("general", "model")))
    assert [(one.mode, one.status) for one in said] == [("general", "ready")]
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (memory.content_hash, None)


async def test_a_forgotten_memory_has_no_vector_left_and_nothing_is_said_of_it(indexer: EmbedHarness) -> None:
    memory, other = remembered("violin"), remembered("cello", "b")
    await indexer.written(memory, other)
    gone = Forgotten(memory_id=memory.memory_id, places=(indexer.place("general"),))
    assert await indexer.written(gone) == []
    assert (await indexer.hash_of(memory), await indexer.hash_of(other)) == (None, other.content_hash)


async def test_a_memory_that_is_forgotten_on_its_way_is_not_written(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    assert await indexer.written(memory, Forgotten(memory_id=memory.memory_id, places=())) == []
    assert await indexer.hash_of(memory) is None


async def test_untold_vectors_of_a_killed_worker_are_removed_with_later_ones(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    await indexer.written(memory, Forgotten(memory_id=memory.memory_id, places=()))
    assert await indexer.hash_of(memory) is None


async def test_strays_are_removed_and_the_vector_that_belongs_there_is_not(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory, memory.model_copy(update={"mode": "code"}))
    strays = (indexer.place("general"), indexer.place("code"), VectorLocation(mode="never", space="was"))
    await indexer.written(Remembered(memory=memory, strays=strays))
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (memory.content_hash, None)


@pytest.mark.parametrize("text", ["unspeakable", "infinite"])
async def test_text_without_a_vector_removes_the_previous_vector(indexer: EmbedHarness, text: str) -> None:
    old = remembered("violin")
    await indexer.written(old)
    new = remembered(text).model_copy(update={"embedding": Embedding(place=indexer.place("general"))})
    [said] = await indexer.written(new)
    assert (said.status, await indexer.hash_of(new)) == ("failed", None)


async def test_index_outage_during_a_job_does_not_change_its_work(indexer: EmbedHarness) -> None:
    memory = remembered("violin")
    await indexer.written(memory)
    there = await indexer.encoded(move_to_mode(indexer.ready(memory), ("code", "model")))
    indexer.index.down()
    with pytest.raises(Unavailable):
        await indexer.embed.write(there)
    with pytest.raises(Unavailable):
        await indexer.encoded(move_to_mode(indexer.ready(memory), ("notes", "model")))
    indexer.index.up()
    await indexer.embed.write(there)
    assert (await indexer.hash_of(memory), await indexer.hash_of(memory, "code")) == (None, memory.content_hash)


async def test_mode_declared_between_memories_applies_to_the_next_one(indexer: EmbedHarness) -> None:
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
async def test_untold_vector_is_removed_although_its_mode_changed_or_is_gone(
    indexer: EmbedHarness, embedder: str | None
) -> None:
    memory, bystander = remembered("violin", mode="code"), remembered("cello", "b", mode="code")
    before = indexer.of("code")
    await indexer.written(memory, bystander)
    # No event of the first left. Then a command was carried out, and its event comes again.
    modes = [Mode(name="code", embedder=embedder, embedding_dim=48)] if embedder else []
    indexer.modes.put(PARTITION, "u1", ModeDeclarations(modes=tuple(modes)))
    [said] = await indexer.written(memory)
    assert said.status == ("ready" if embedder else "waiting")
    assert list(await indexer.index.hashes(before, [memory.memory_id, bystander.memory_id])) == [bystander.memory_id]
    assert not embedder or await indexer.hash_of(memory) == memory.content_hash


async def test_untold_vector_is_removed_when_its_memory_moved_in_the_batch(indexer: EmbedHarness) -> None:
    memory = remembered("violin", mode="code")
    before = indexer.of("code")
    await indexer.written(memory)
    indexer.modes.put(PARTITION, "u1", ModeDeclarations())
    moved_on = memory.model_copy(update={"mode": GENERAL})
    await indexer.written(memory, moved_on)
    assert await indexer.index.hashes(before, [memory.memory_id]) == {}
    assert await indexer.hash_of(moved_on) == memory.content_hash
