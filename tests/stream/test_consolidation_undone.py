"""What was distilled from turns that are forgotten, edited or moved."""

import json

from tests.worlds.consolidation import WATERED, consolidate, of_origin, said
from tests.worlds.in_memory_pipeline import InMemoryMap


async def test_forgetting_one_turn_forgets_what_was_distilled_from_it_and_serves_the_others(
    the_map: InMemoryMap,
) -> None:
    await said(the_map, 5)
    await consolidate(the_map)
    gone = the_map.memory(WATERED.format(2))
    await the_map.command("forget", memory_id=gone.memory_id)
    assert of_origin(the_map, "distilled") == []
    left = {WATERED.format(number) for number in (0, 1, 3, 4)}
    assert set(await the_map.texts("watered the tomatoes")) == left
    assert len((await consolidate(the_map))["superseded"]) == 4
    assert WATERED.format(2) not in json.dumps([one.model_dump(mode="json") for one in the_map.memories.all()])


async def test_forgetting_a_distilled_memory_serves_its_turns_and_it_is_not_made_again(the_map: InMemoryMap) -> None:
    await said(the_map, 4)
    [created] = (await consolidate(the_map))["created"]
    await the_map.command("forget", memory_id=created)
    assert len(await the_map.texts("watered the tomatoes")) == 4
    assert (await consolidate(the_map))["created"] == []


async def test_an_edited_turn_is_served_again_and_what_had_its_old_text_is_gone(the_map: InMemoryMap) -> None:
    await the_map.remember("Watered the tomatoes with salted water.", "edited")
    await said(the_map, 3)
    await said(the_map, 1, "Watered the tomatoes in the greenhouse with salted water today, they look healthy.")
    await the_map.topics.settled()
    for turn in of_origin(the_map, "said"):
        await the_map.remember(WATERED.format(f"{turn.turn_id}"), turn.turn_id)
    await the_map.topics.settled()
    [created] = (await consolidate(the_map))["created"]
    await the_map.remember("The peppers are dead.", "edited")
    await the_map.topics.settled()
    assert the_map.memory("The peppers are dead.").superseded_by is None
    assert of_origin(the_map, "distilled") == []
    assert all(one.superseded_by is None for one in the_map.memories.all())
    assert not await the_map.vectors_in("general", the_map.space("general", "general").fingerprint, [created])


async def test_a_turn_that_is_put_into_another_mode_leaves_what_it_was_distilled_with(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", name="garden", embedder="tiny32")
    await said(the_map, 4)
    await consolidate(the_map)
    moved = the_map.memory(WATERED.format(1))
    await the_map.command("set_memory_mode", memory_id=moved.memory_id, mode="garden")
    assert of_origin(the_map, "distilled") == []
    assert all(one.superseded_by is None for one in the_map.memories.all())


async def test_a_mode_that_is_renamed_takes_what_was_distilled_along(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", name="garden", embedder="tiny32")
    await said(the_map, 4, mode="garden")
    await consolidate(the_map)
    await the_map.command("rename_mode", name="garden", new_name="plants")
    [memory] = of_origin(the_map, "distilled")
    assert memory.mode == "plants"
    assert {one.superseded_by for one in of_origin(the_map, "said")} == {memory.memory_id}
    assert (await consolidate(the_map))["created"] == []
