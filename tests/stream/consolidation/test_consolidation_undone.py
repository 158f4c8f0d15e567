"""Summaries of turns that are forgotten, edited or moved."""

import json

from tests.worlds.consolidation import WATERED, consolidate, of_origin, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline


async def test_forgetting_a_turn_forgets_its_distilled_memory_only(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 5)
    await consolidate(pipeline)
    forgotten = pipeline.memory(WATERED.format(2))
    await pipeline.command("forget", memory_id=forgotten.memory_id)
    assert of_origin(pipeline, "distilled") == []
    left = {WATERED.format(number) for number in (0, 1, 3, 4)}
    assert set(await pipeline.texts("watered the tomatoes")) == left
    assert len((await consolidate(pipeline))["superseded"]) == 4
    assert WATERED.format(2) not in json.dumps([memory.model_dump(mode="json") for memory in pipeline.memories.all()])


async def test_forgotten_distilled_memory_restores_its_turns_for_good(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    [created] = (await consolidate(pipeline))["created"]
    await pipeline.command("forget", memory_id=created)
    assert len(await pipeline.texts("watered the tomatoes")) == 4
    assert (await consolidate(pipeline))["created"] == []


async def test_edit_restores_its_turn_and_removes_the_summary(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Watered the tomatoes with salted water.", "edited")
    await remember_many(pipeline, 3)
    await remember_many(
        pipeline, 1, "Watered the tomatoes in the greenhouse with salted water today, they look healthy."
    )
    await pipeline.topics.settled()
    for turn in of_origin(pipeline, "said"):
        await pipeline.remember(WATERED.format(f"{turn.turn_id}"), turn.turn_id)
    await pipeline.topics.settled()
    [created] = (await consolidate(pipeline))["created"]
    await pipeline.remember("The peppers are dead.", "edited")
    await pipeline.topics.settled()
    assert pipeline.memory("The peppers are dead.").superseded_by is None
    assert of_origin(pipeline, "distilled") == []
    assert all(memory.superseded_by is None for memory in pipeline.memories.all())
    assert not await pipeline.vectors_in("general", pipeline.space("general", "general").fingerprint, [created])


async def test_turn_moved_to_another_mode_leaves_its_distilled_memory(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="garden", embedder="tiny32")
    await remember_many(pipeline, 4)
    await consolidate(pipeline)
    moved = pipeline.memory(WATERED.format(1))
    await pipeline.command("set_memory_mode", memory_id=moved.memory_id, mode="garden")
    assert of_origin(pipeline, "distilled") == []
    assert all(memory.superseded_by is None for memory in pipeline.memories.all())


async def test_rename_moves_summaries(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="garden", embedder="tiny32")
    await remember_many(pipeline, 4, mode="garden")
    await consolidate(pipeline)
    await pipeline.command("rename_mode", name="garden", new_name="plants")
    [memory] = of_origin(pipeline, "distilled")
    assert memory.mode == "plants"
    assert {memory.superseded_by for memory in of_origin(pipeline, "said")} == {memory.memory_id}
    assert (await consolidate(pipeline))["created"] == []
