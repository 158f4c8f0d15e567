"""A mode's embedder is changed: built beside the former one, switched when complete, and rolled back."""

from pathlib import Path

import pytest

from schemas.state.memories import Memory
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message
from tests.worlds.mode_commands import code_of, count_vectors, declare, remember_turn, search_mode

TEXTS = [f"Crate {number} is in the hall." for number in range(4)]


async def changing(pipeline: InMemoryPipeline) -> None:
    """Store turns by `tiny32`, and declare `tiny48`, whose model is not there yet."""
    await declare(pipeline, "code", "tiny32")
    for text in TEXTS:
        await remember_turn(pipeline, text, mode="code")
    pipeline.embedders.missing("tiny48")
    await declare(pipeline, "code", "tiny48")


async def complete(pipeline: InMemoryPipeline) -> None:
    """Load the new model, and wait until all memories have its vectors."""
    pipeline.embedders.load("tiny48")
    await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()


async def asked_by(pipeline: InMemoryPipeline) -> tuple[str, Json]:
    """Ask a question; return the model that embedded it, and the reply."""
    models = {name: pipeline.embedders.model(name) for name in ("tiny32", "tiny48")}
    before = {name: len(model.queries) for name, model in models.items()}
    reply = await pipeline.retrieve("which crate is in the hall?", mode="code")
    return "+".join(name for name, model in models.items() if len(model.queries) > before[name]), reply


async def former_of(pipeline: InMemoryPipeline) -> Json | None:
    former: Json | None = (await pipeline.command("health"))["result"]["modes"]["code"]["former"]
    return former


def embedded_events(pipeline: InMemoryPipeline) -> int:
    """Count the requests for vectors so far."""
    return len(pipeline.topics.records(pipeline.names.remembered))


async def vectors_of(pipeline: InMemoryPipeline, memory: Memory) -> list[str]:
    spaces = (await pipeline.index.spaces()).values()
    return [space.embedder for space in spaces if await pipeline.vectors_in("code", space, [memory.memory_id])]


async def test_former_embedder_serves_until_the_new_one_has_all(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    model, reply = await asked_by(pipeline)
    assert model == "tiny32"
    assert reply["result"]["strategy"] == "hybrid"
    assert reply["warnings"] == []
    assert {hit["embedding_status"] for hit in reply["result"]["hits"]} == {"stale"}
    assert await former_of(pipeline) == {"embedder": "tiny32", "serves": True, "vectors": 4}
    await complete(pipeline)
    assert await former_of(pipeline) == {"embedder": "tiny32", "serves": False, "vectors": 4}
    model, reply = await asked_by(pipeline)
    assert model == "tiny48"
    assert reply["result"]["strategy"] == "hybrid"
    assert reply["warnings"] == []
    assert await count_vectors(pipeline) == {"code/tiny32": 4, "code/tiny48": 4}


async def test_former_embedder_stands_in_while_the_declared_one_is_not_loaded(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    pipeline.embedders.missing("tiny48")
    await pipeline.remember("The lantern is in the attic.", mode="code")
    await pipeline.topics.settled()
    model, reply = await asked_by(pipeline)
    assert model == "tiny32"
    assert reply["result"]["strategy"] == "hybrid"
    assert len(reply["result"]["hits"]) == 5
    former = await former_of(pipeline)
    assert former is not None
    assert former["serves"] is False, "a turn that waits does not undo the switch"
    await complete(pipeline)
    assert (await asked_by(pipeline))[0] == "tiny48"
    assert await count_vectors(pipeline) == {"code/tiny32": 4, "code/tiny48": 5}


async def test_turn_during_a_change_is_found_by_the_former_embedder(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await remember_turn(pipeline, "The lantern is in the attic.", mode="code")
    lantern = pipeline.memory("The lantern is in the attic.")
    assert await vectors_of(pipeline, lantern) == ["tiny32"]
    assert (await search_mode(pipeline, "code", "lantern"))[0] == lantern.text
    await complete(pipeline)
    assert await count_vectors(pipeline) == {"code/tiny32": 5, "code/tiny48": 5}


async def test_text_that_the_new_model_cannot_embed_does_not_prevent_the_switch(pipeline: InMemoryPipeline) -> None:
    pipeline.embedders.model("tiny48").rejected_word = "Crate 2"
    await changing(pipeline)
    pipeline.embedders.load("tiny48")
    await pipeline.until(lambda: pipeline.memory(TEXTS[2]).embedding.status == "failed")
    await pipeline.until(lambda: pipeline.memory(TEXTS[3]).embedding.status == "ready")
    await pipeline.topics.settled()
    assert (await asked_by(pipeline))[0] == "tiny48"
    assert TEXTS[2] in await search_mode(pipeline, "code", "crate 2")


async def test_roll_back_embeds_nothing_again(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    before = embedded_events(pipeline)
    await declare(pipeline, "code", "tiny32")
    assert (await asked_by(pipeline))[0] == "tiny32", "from the declaration on"
    await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()
    assert embedded_events(pipeline) == before
    assert (await asked_by(pipeline))[0] == "tiny32"
    digest = pipeline.space("code", "tiny32").fingerprint.digest
    assert {memory.embedding.space for memory in pipeline.memories.all()} == {digest}
    assert await count_vectors(pipeline) == {"code/tiny32": 4, "code/tiny48": 4}


async def test_roll_back_completes_the_turns_since(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    await remember_turn(pipeline, "The lantern is in the attic.", mode="code")
    before = embedded_events(pipeline)
    pipeline.embedders.missing("tiny32")
    await declare(pipeline, "code", "tiny32")
    assert (await asked_by(pipeline))[0] == "tiny48", "it serves until the vector of the later turn is made"
    pipeline.embedders.load("tiny32")
    await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()
    assert embedded_events(pipeline) == before + 1
    assert (await asked_by(pipeline))[0] == "tiny32"


async def test_roll_back_of_an_incomplete_change_serves_at_once(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await remember_turn(pipeline, "The lantern is in the attic.", mode="code")
    before = embedded_events(pipeline)
    declared = await declare(pipeline, "code", "tiny32")
    assert declared["embedder"] == "tiny32"
    assert declared["former_embedder"] == "tiny48"
    await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()
    assert embedded_events(pipeline) == before
    assert (await asked_by(pipeline))[0] == "tiny32"


async def test_forgotten_memory_has_no_vector_in_any_space(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await remember_turn(pipeline, "The lantern is in the attic.", mode="code")
    waiting, later = pipeline.memory(TEXTS[0]), pipeline.memory("The lantern is in the attic.")
    for memory in (waiting, later):
        await pipeline.command("forget", memory_id=memory.memory_id)
    await complete(pipeline)
    made = pipeline.memory(TEXTS[1])
    assert await vectors_of(pipeline, made) == ["tiny32", "tiny48"]
    await pipeline.command("forget", memory_id=made.memory_id)
    await pipeline.topics.settled()
    assert [await vectors_of(pipeline, memory) for memory in (waiting, later, made)] == [[], [], []]


async def test_forgotten_user_has_no_vector_in_any_space(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    message = command_message("forget") | {"arguments": {"user": True}}
    assert (await pipeline.ask(pipeline.names.commands, message))["status"] == "ok"
    await pipeline.topics.settled()
    assert not any(collection.points for collection in pipeline.index.collections.values())


async def test_edit_leaves_no_vector_of_the_replaced_text(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    during, after = pipeline.memory(TEXTS[0]), pipeline.memory(TEXTS[1])
    await pipeline.remember("The lantern is in the attic.", TEXTS[0], mode="code")
    await pipeline.topics.settled()
    assert await hashes_of(pipeline, during) == {pipeline.memory("The lantern is in the attic.").content_hash}
    await complete(pipeline)
    await pipeline.remember("The stairs are steep.", TEXTS[1], mode="code")
    await pipeline.topics.settled()
    assert await vectors_of(pipeline, after) == ["tiny48"]
    assert await hashes_of(pipeline, after) == {pipeline.memory("The stairs are steep.").content_hash}


async def hashes_of(pipeline: InMemoryPipeline, memory: Memory) -> set[str]:
    points = [collection.points.get(memory.memory_id) for collection in pipeline.index.collections.values()]
    return {point.content_hash for point in points if point is not None}


@pytest.mark.parametrize("at", ["during", "after"])
async def test_hidden_and_moved_memories_leave_both_spaces(pipeline: InMemoryPipeline, at: str) -> None:
    await changing(pipeline)
    hidden, moved = pipeline.memory(TEXTS[0]), pipeline.memory(TEXTS[1])
    if at == "after":
        await complete(pipeline)
    await pipeline.command("set_memory_visibility", memory_id=hidden.memory_id, searchable=False)
    await pipeline.command("set_memory_mode", memory_id=moved.memory_id, mode="general")
    await pipeline.topics.settled()
    assert [await vectors_of(pipeline, memory) for memory in (hidden, moved)] == [[], []]
    assert hidden.text not in await search_mode(pipeline, "code", "crate")


async def test_former_vectors_are_dropped_on_demand_and_not_while_they_serve(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    refused = await pipeline.command("declare_mode", name="code", embedder="tiny48", keep_former=False)
    assert code_of(refused) == "conflict"
    await complete(pipeline)
    before = embedded_events(pipeline)
    declared = await declare(pipeline, "code", "tiny48", keep_former=False)
    await pipeline.topics.settled()
    assert declared["former_embedder"] is None
    assert await former_of(pipeline) is None
    assert await count_vectors(pipeline) == {"code/tiny48": 4}
    assert {memory.embedding.held for memory in pipeline.memories.all()} == {()}
    assert embedded_events(pipeline) == before + 4, "removals: nothing was embedded"
    assert len(pipeline.embedders.model("tiny48").passages) == 4


@pytest.mark.parametrize("lost", [(), ("words",), ("vectors",)])
async def test_worker_killed_during_a_change_goes_on(tmp_path: Path, lost: tuple[str, ...]) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await changing(pipeline)
        await remember_turn(pipeline, "The lantern is in the attic.", mode="code")
    pipeline.lose_files(*lost)  # type: ignore[arg-type]
    async with pipeline.running():
        if "vectors" not in lost:
            assert (await asked_by(pipeline))[0] == "tiny32"
        await complete(pipeline)
        assert (await asked_by(pipeline))[0] == "tiny48"
        assert len(await search_mode(pipeline, "code", "crate lantern")) == 5
        found = await count_vectors(pipeline)
        assert found["code/tiny48"] == 5
        held = [memory for memory in pipeline.memories.all() if memory.embedding.held]
        assert found["code/tiny32"] == len(held), "records hold what the index has"


async def test_lost_former_vectors_are_made_again_at_the_roll_back(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await changing(pipeline)
        await complete(pipeline)
    del pipeline.index.collections[pipeline.space("code", "tiny32").collection]
    async with pipeline.running():
        await pipeline.until(lambda: not any(memory.embedding.held for memory in pipeline.memories.all()))
        await declare(pipeline, "code", "tiny32")
        await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
        await pipeline.topics.settled()
        assert await count_vectors(pipeline) == {"code/tiny32": 4, "code/tiny48": 4}


async def test_third_embedder_keeps_the_one_before(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    await declare(pipeline, "code", "general")
    await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()
    assert await count_vectors(pipeline) == {"code/tiny48": 4, "code/all-MiniLM-L6-v2": 4}


async def test_jobs_take_former_vectors_for_no_orphans(pipeline: InMemoryPipeline) -> None:
    await changing(pipeline)
    await complete(pipeline)
    result = (await pipeline.command("reconcile"))["result"]
    assert result["processed"] == 0
    assert result["orphans"] == 0
    assert (await pipeline.command("verify"))["result"]["vectors_orphaned"] == 0
    assert await count_vectors(pipeline) == {"code/tiny32": 4, "code/tiny48": 4}
