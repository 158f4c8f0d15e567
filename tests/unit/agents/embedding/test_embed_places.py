"""`Embed`: vectors move and go with their memories."""

import numpy as np
import pytest

from agents.rules.memory.versions import move_to_mode
from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.memories import Embedding, VectorLocation
from schemas.state.modes import GENERAL, Mode, ModeDeclarations, VectorSpace
from tests.harnesses.embed import PARTITION, EmbedHarness, remembered


async def test_moved_memory_is_embedded_in_the_new_space_and_leaves_the_old(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    moved = move_to_mode(harness.ready(memory), ("code", "model"))
    [report] = await harness.write(moved)
    assert report.mode == "code"
    assert report.space == harness.location("code").space
    assert report.status == "ready"
    assert await harness.stored_hash(moved) == memory.content_hash
    assert await harness.stored_hash(memory) is None


async def test_move_within_a_space_copies_the_vectors(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    model = harness.embedders.model("general")
    model.outage = True
    moved = move_to_mode(harness.ready(memory), ("notes", "model"))
    [report] = await harness.write(moved)
    assert report.mode == "notes"
    assert report.status == "ready"
    assert await harness.stored_hash(moved) == memory.content_hash
    assert await harness.stored_hash(memory) is None
    stored = (await harness.index.vectors(harness.space("notes"), [memory.memory_id]))[memory.memory_id]
    model.outage = False
    fresh = await model.passage("violin")
    assert np.allclose(stored.pooled, fresh.pooled, atol=1e-6)
    assert stored.tokens.tolist() == fresh.tokens.tolist() != []


async def test_vector_of_another_text_is_not_copied(harness: EmbedHarness) -> None:
    old, new = remembered("violin"), remembered("cello")
    await harness.write(new)
    await harness.write(old)
    await harness.write(move_to_mode(harness.ready(new), ("notes", "model")))
    vectors = await harness.index.vectors(harness.space("notes"), [new.memory_id])
    fresh = (await harness.embedders.model("general").passage("cello")).pooled
    assert np.allclose(vectors[new.memory_id].pooled, fresh, atol=1e-6)


async def test_missing_vector_is_recomputed_on_a_move(harness: EmbedHarness) -> None:
    moved = move_to_mode(harness.ready(remembered("violin")), ("notes", "model"))
    [report] = await harness.write(moved)
    assert report.status == "ready"
    assert await harness.stored_hash(moved) == moved.content_hash


@pytest.mark.parametrize("mode", ["notes", "code"])
async def test_repeated_move_leaves_one_vector(harness: EmbedHarness, mode: str) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    moved = move_to_mode(harness.ready(memory), (mode, "model"))
    await harness.write(moved)
    await harness.write(moved)
    assert await harness.stored_hash(moved) == memory.content_hash
    assert await harness.stored_hash(memory) is None


async def test_move_back_within_a_batch_keeps_the_location(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    moved = move_to_mode(harness.ready(memory), ("code", "model"))
    reports = await harness.write(moved, move_to_mode(moved, ("general", "model")))
    assert [(report.mode, report.status) for report in reports] == [("general", "ready")]
    assert await harness.stored_hash(memory) == memory.content_hash
    assert await harness.stored_hash(memory, "code") is None


async def test_forgotten_memory_loses_its_vectors_without_a_report(harness: EmbedHarness) -> None:
    memory, other = remembered("violin"), remembered("cello", "b")
    await harness.write(memory, other)
    forgotten = Forgotten(memory_id=memory.memory_id, places=(harness.location("general"),))
    assert await harness.write(forgotten) == []
    assert await harness.stored_hash(memory) is None
    assert await harness.stored_hash(other) == other.content_hash


async def test_memory_forgotten_during_embedding_is_not_written(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    assert await harness.write(memory, Forgotten(memory_id=memory.memory_id, places=())) == []
    assert await harness.stored_hash(memory) is None


async def test_unreported_vectors_of_a_killed_worker_are_removed(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    await harness.write(memory, Forgotten(memory_id=memory.memory_id, places=()))
    assert await harness.stored_hash(memory) is None


async def test_stray_vectors_are_removed_but_not_the_current_one(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory, memory.model_copy(update={"mode": "code"}))
    strays = (harness.location("general"), harness.location("code"), VectorLocation(mode="never", space="was"))
    await harness.write(Remembered(memory=memory, strays=strays))
    assert await harness.stored_hash(memory) == memory.content_hash
    assert await harness.stored_hash(memory, "code") is None


@pytest.mark.parametrize("text", ["unspeakable", "infinite"])
async def test_text_without_a_vector_removes_the_previous_vector(harness: EmbedHarness, text: str) -> None:
    old = remembered("violin")
    await harness.write(old)
    new = remembered(text).model_copy(update={"embedding": Embedding(place=harness.location("general"))})
    [report] = await harness.write(new)
    assert report.status == "failed"
    assert await harness.stored_hash(new) is None


async def test_index_outage_during_a_job_does_not_change_its_work(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    moved = await harness.encode(move_to_mode(harness.ready(memory), ("code", "model")))
    harness.index.down()
    with pytest.raises(Unavailable):
        await harness.embed.write(moved)
    with pytest.raises(Unavailable):
        await harness.encode(move_to_mode(harness.ready(memory), ("notes", "model")))
    harness.index.up()
    await harness.embed.write(moved)
    assert await harness.stored_hash(memory) is None
    assert await harness.stored_hash(memory, "code") == memory.content_hash


async def test_mode_declared_between_memories_applies_to_the_next_one(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    await harness.write(memory)
    anew = Mode(name="general", embedder="tiny48", embedding_dim=48)
    before = harness.location("general")
    harness.modes.declare(anew, boundary="u1", partition=PARTITION)
    [report] = await harness.write(memory.model_copy(update={"embedding": Embedding(place=before)}))
    assert report.space == harness.location("general").space != before.space
    stored = await harness.index.spaces()
    old = VectorSpace("general", stored[f"general-{before.space}"])
    assert await harness.index.count(old, PARTITION) == 0


@pytest.mark.parametrize("embedder", ["tiny48", None])
async def test_unreported_vector_is_removed_after_a_mode_change(harness: EmbedHarness, embedder: str | None) -> None:
    memory, bystander = remembered("violin", mode="code"), remembered("cello", "b", mode="code")
    before = harness.space("code")
    await harness.write(memory, bystander)
    # No event of the first write was published. After a command, the event is delivered again.
    modes = [Mode(name="code", embedder=embedder, embedding_dim=48)] if embedder else []
    harness.modes.put(PARTITION, "u1", ModeDeclarations(modes=tuple(modes)))
    [report] = await harness.write(memory)
    assert report.status == ("ready" if embedder else "waiting")
    assert list(await harness.index.hashes(before, [memory.memory_id, bystander.memory_id])) == [bystander.memory_id]
    assert not embedder or await harness.stored_hash(memory) == memory.content_hash


async def test_unreported_vector_is_removed_after_a_move_in_the_batch(harness: EmbedHarness) -> None:
    memory = remembered("violin", mode="code")
    before = harness.space("code")
    await harness.write(memory)
    harness.modes.put(PARTITION, "u1", ModeDeclarations())
    moved_on = memory.model_copy(update={"mode": GENERAL})
    await harness.write(memory, moved_on)
    assert await harness.index.hashes(before, [memory.memory_id]) == {}
    assert await harness.stored_hash(moved_on) == memory.content_hash
