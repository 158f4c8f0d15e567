"""Memories that no search finds, through the whole pipeline: kept and listed, and in no answer, context or vector."""

from typing import Any

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

HERE = partition_of(b"u1", 4)
SECRET = "The deploy target is fly.io now."
OTHER = "Lunch was pumpkin soup."


async def say(pipeline: InMemoryPipeline, text: str, turn_id: str | None = None, **fields: Any) -> Json:
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, turn_id or text, **fields))
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def hide(pipeline: InMemoryPipeline, text: str, *, searchable: bool = False) -> Json:
    arguments: Json = {"memory_id": pipeline.memory(text).memory_id, "searchable": searchable}
    reply = await pipeline.command("set_memory_visibility", **arguments)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def listed(pipeline: InMemoryPipeline, **fields: Any) -> list[str]:
    return [item["text"] for item in (await pipeline.list_page(**fields))["result"]["items"]]


async def count_vectors(pipeline: InMemoryPipeline) -> int:
    await pipeline.topics.settled()
    return await pipeline.index.count(pipeline.space("general", "general"), HERE)


@pytest.fixture
async def world(pipeline: InMemoryPipeline) -> InMemoryPipeline:
    """Two turns, with their vectors, one of which has an item and is a goal."""
    for text in (SECRET, OTHER):
        await say(pipeline, text)
    await pipeline.topics.settled()
    return pipeline


async def test_flag_by_command_hides_from_search_and_not_from_lists(world: InMemoryPipeline) -> None:
    assert SECRET in await world.texts("deploy target")
    shown = await hide(world, SECRET)
    assert shown["searchable"] is False
    assert shown["private"] is False
    assert shown["embedding"]["status"] == "not_applicable"
    for fields in ({}, {"mode": "*"}, {"types": ["semantic"]}, {"types": ["working"], "conversation_id": "c1"}):
        assert SECRET not in await world.texts("what is the deploy target?", **fields)
    assert await listed(world) == [OTHER, SECRET]
    assert await listed(world, types=["semantic"]) == [SECRET]
    assert await listed(world, conversation_id="c1", embedding_status="not_applicable") == [SECRET]
    [_, item] = (await world.list_page())["result"]["items"]
    assert item["searchable"] is False
    assert (await world.command("get_memory", memory_id=item["memory_id"]))["result"]["text"] == SECRET
    [talk] = (await world.list_page("conversations"))["result"]["items"]
    assert talk["turns"] == 2


async def test_taken_back_flag_brings_everything_back(world: InMemoryPipeline) -> None:
    before = {memory.memory_id: memory for memory in world.memories.all()}
    found = await world.retrieve("deploy target", explain=True)
    vectors = await count_vectors(world)
    await hide(world, SECRET)
    assert await count_vectors(world) < vectors
    await hide(world, SECRET, searchable=True)
    assert await count_vectors(world) == vectors
    after = {memory.memory_id: memory for memory in world.memories.all()}
    assert after.keys() == before.keys()
    assert {memory.embedding.status for memory in after.values()} == {"ready"}
    again = await world.retrieve("deploy target", explain=True)
    assert again["result"]["hits"] == found["result"]["hits"]


async def test_hidden_turn_changes_no_ranking(world: InMemoryPipeline) -> None:
    await say(world, "The soup needs more deploy salt.")
    await hide(world, SECRET)
    await world.topics.settled()
    with_hidden = (await world.retrieve("deploy soup", explain=True))["result"]["hits"]
    await world.command("forget", memory_id=world.memory(SECRET).memory_id)
    without = (await world.retrieve("deploy soup", explain=True))["result"]["hits"]
    assert with_hidden == without


async def test_hidden_turn_is_in_no_context(world: InMemoryPipeline) -> None:
    rule = "Never deploy on Fridays; it is a hard safety requirement."
    await say(world, rule)
    await world.topics.settled()
    pinned = world.memory(rule).memory_id
    before = (await world.assemble("deploy", conversation_id="c1"))["result"]
    assert pinned in before["sticky"]
    await hide(world, rule)
    reply = await world.assemble("deploy on Fridays", conversation_id="c1", pins=[pinned])
    assert [warning["code"] for warning in reply["warnings"]] == ["unknown_pin"]
    assert "Fridays" not in str(reply["result"]["messages"])
    assert pinned not in (*reply["result"]["references"], *reply["result"]["sticky"], *reply["result"]["dropped"])


async def test_goal_of_a_hidden_turn_leaves_the_intention(world: InMemoryPipeline) -> None:
    goal = "My goal is to ship the beta in June."
    await say(world, goal)
    await world.topics.settled()
    assert (await world.command("get_intention"))["result"]["goals"]
    await hide(world, goal)
    assert not (await world.command("get_intention"))["result"]["goals"]
    await hide(world, goal, searchable=True)
    await world.topics.settled()
    assert (await world.command("get_intention"))["result"]["goals"]


async def test_turn_published_hidden_is_never_found_and_has_no_vector(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, SECRET, searchable=False)
    assert await pipeline.texts("deploy target") == []
    assert await count_vectors(pipeline) == 0
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"not_applicable"}
    assert pipeline.embedder.passages == []
    assert (await pipeline.command("health"))["result"]["modes"]["general"]["not_applicable"] == 2


async def test_hidden_statement_supersedes_no_visible_one(world: InMemoryPipeline) -> None:
    await say(world, "The deploy target is AWS now.", searchable=False)
    assert (await world.retrieve("deploy target", types=["semantic"]))["result"]["hits"][0]["text"] == SECRET


async def test_edit_keeps_the_flag_unless_it_says_otherwise(world: InMemoryPipeline) -> None:
    await hide(world, SECRET)
    await say(world, "The deploy target is AWS.", turn_id=SECRET)
    assert await world.texts("deploy target") == [OTHER]
    await say(world, "The deploy target is Azure.", turn_id=SECRET, searchable=True)
    assert "The deploy target is Azure." in await world.texts("deploy target")


async def test_mode_that_is_not_searchable_hides_its_memories_and_no_others(world: InMemoryPipeline) -> None:
    await world.command("declare_mode", name="vault", embedder="tiny32")
    await say(world, "The vault code is 4711.", mode="vault")
    await world.topics.settled()
    reply = await world.command("declare_mode", name="vault", embedder="tiny32", searchable=False)
    assert reply["result"]["searchable"] is False
    assert set(await world.texts("vault code", mode="*")) == {SECRET, OTHER}
    await say(world, "The vault door is green.", mode="vault")
    assert set(await world.texts("vault door", mode="*")) == {SECRET, OTHER}
    assert len(await listed(world, mode="vault")) == 2
    moved = world.memory("The vault door is green.").memory_id
    await world.command("set_memory_mode", memory_id=moved, mode="general")
    assert "The vault door is green." in await world.texts("vault door")
    await world.command("declare_mode", name="vault", embedder="tiny32", searchable=True)
    assert await world.texts("vault code", mode="vault") == ["The vault code is 4711."]


async def test_lists_of_conversations_and_projects_count_hidden_turns(pipeline: InMemoryPipeline) -> None:
    for number, speaker in enumerate(("Ana", "Ben", "Cleo")):
        fields = {"speaker": speaker, "occurred_at": f"2026-03-0{number + 1}T09:00:00Z"}
        await say(pipeline, f"Remark {number}.", searchable=number == 0, **fields)
    await say(pipeline, "Elsewhere.", conversation_id="c2", searchable=False, occurred_at="2026-03-09T09:00:00Z")
    second, first = (await pipeline.list_page("conversations"))["result"]["items"]
    assert first["conversation_id"] == "c1"
    assert first["turns"] == 3
    assert first["speakers"] == ["Ana", "Ben", "Cleo"]
    assert second["conversation_id"] == "c2"
    assert second["turns"] == 1
    assert second["speakers"] == []
    [project] = (await pipeline.list_page("projects"))["result"]["items"]
    assert project["memories"] == 4
    assert project["conversations"] == 2
    page = (await pipeline.list_page(limit=3))["result"]
    rest = (await pipeline.list_page(limit=3, cursor=page["next"]))["result"]
    texts = [item["text"] for item in (*page["items"], *rest["items"])]
    assert texts == ["Elsewhere.", "Remark 2.", "Remark 1.", "Remark 0."]


async def test_hidden_turn_is_on_no_map_and_in_no_category(world: InMemoryPipeline) -> None:
    await world.command("declare_category", name="deploying", description="deploy target, port, release")
    await world.topics.settled()
    assert (await world.command("get_category", name="deploying"))["result"]["items"]
    await hide(world, SECRET)
    shown = (await world.command("get_category", name="deploying"))["result"]
    assert shown["items"] == []
    assert shown["anchors"] == []
    assert shown["summary"] is None
    request = {"schema": "map.v1", "scope": {"user_id": "u1"}, "mode": "general"}
    [cloud] = (await world.ask(world.names.retrieve, request))["result"]["clouds"]
    assert [point["text"] for point in cloud["points"]] == [OTHER]


async def test_jobs_skip_hidden_memories_and_make_no_vector(world: InMemoryPipeline) -> None:
    await hide(world, SECRET)
    for job in ("rebuild", "backfill", "reconcile"):
        assert (await world.command(job))["status"] == "ok"
    assert await count_vectors(world) == 1
    assert world.memory(SECRET).embedding.status == "not_applicable"


async def test_hidden_turns_are_not_consolidated(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4, searchable=False)
    assert (await consolidate(pipeline))["created"] == []
    await remember_many(pipeline, 4, "Watered the roses in the garden on day {}, they look healthy.")
    [created] = (await consolidate(pipeline))["created"]
    await hide(pipeline, "Watered the roses in the garden on day 0, they look healthy.")
    assert (await pipeline.command("get_memory", memory_id=created))["error"]["code"] == "not_found"


async def test_hidden_memories_are_forgotten_with_all_others(world: InMemoryPipeline) -> None:
    await hide(world, SECRET)
    assert (await world.command("forget", conversation_id="c1"))["result"]["forgotten"] >= 2
    await world.topics.settled()
    assert list(world.memories.all()) == []


async def test_command_refuses_items_and_no_flag(world: InMemoryPipeline) -> None:
    [item] = (await world.list_page(types=["semantic"]))["result"]["items"]
    for arguments in ({"memory_id": item["memory_id"], "private": True}, {"memory_id": world.memory(OTHER).memory_id}):
        reply = await world.command("set_memory_visibility", **arguments)
        assert reply["error"]["code"] == "invalid_value"
