"""Renaming and deleting categories through the whole pipeline: items follow or leave, and nothing comes back."""

from pathlib import Path
from typing import Any

from schemas.internal.events import Embedded
from schemas.messages.records import Outgoing
from schemas.state.memories import CategoryAssignment, Memory
from tests.worlds.consolidation import consolidate
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

HEALTH = "dentist appointment, allergic penicillin"
MONEY = "rent, euros a month"
DENTIST = "My dentist appointment is on Tuesday."
PENICILLIN = "I am allergic to penicillin."
RENT = "My rent is 900 euros a month."


async def remember_turns(pipeline: InMemoryPipeline, *texts: str, **fields: Any) -> None:
    """Remember turns and wait until they are understood and embedded."""
    for text in texts:
        await pipeline.remember(text, turn_id=text, **fields)
    await pipeline.topics.settled()


async def run(pipeline: InMemoryPipeline, command: str, **arguments: Any) -> Json:
    reply = await pipeline.command(command, **arguments)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def refusal(pipeline: InMemoryPipeline, command: str, **arguments: Any) -> tuple[str, str]:
    error = (await pipeline.command(command, **arguments))["error"]
    return error["code"], error["field"]


async def filed(pipeline: InMemoryPipeline, **where: Any) -> dict[str, set[str]]:
    listed = await run(pipeline, "list_categories", include_items=True, **where)
    return {category["name"]: {item["text"] for item in category["items"]} for category in listed["categories"]}


def assigned_names(pipeline: InMemoryPipeline) -> set[str]:
    return {category.name for memory in pipeline.memories.all() if memory.item for category in memory.item.categories}


def item_of(pipeline: InMemoryPipeline, text: str) -> Memory:
    [item] = [memory for memory in pipeline.memories.all() if memory.origin == "extracted" and memory.text == text]
    return item


async def test_items_and_summary_follow_a_renamed_category(pipeline: InMemoryPipeline) -> None:
    await run(pipeline, "declare_category", name="health", description=HEALTH)
    await run(pipeline, "declare_category", name="money", description=MONEY)
    await remember_turns(pipeline, DENTIST, PENICILLIN, RENT)
    before = await run(pipeline, "get_category", name="health")
    renamed = await run(pipeline, "rename_category", name="health", new_name="body")
    assert renamed["name"] == "body"
    assert renamed["description"] == HEALTH
    assert renamed["size"] == 2
    assert await filed(pipeline) == {"body": {DENTIST, PENICILLIN}, "money": {RENT}}
    after = await run(pipeline, "get_category", name="body")
    assert after["summary"] == before["summary"]
    assert after["anchors"] == before["anchors"]
    assert await refusal(pipeline, "get_category", name="health") == ("not_found", "arguments.name")
    assert assigned_names(pipeline) == {"body", "money"}


async def test_same_rename_again_is_answered_and_changes_nothing(pipeline: InMemoryPipeline) -> None:
    await run(pipeline, "declare_category", name="health", description=HEALTH)
    await remember_turns(pipeline, DENTIST)
    first = await run(pipeline, "rename_category", name="health", new_name="body")
    assert await run(pipeline, "rename_category", name="health", new_name="body") == first
    assert await run(pipeline, "rename_category", name="body", new_name="body") == first


async def test_rename_of_nothing_or_onto_another_category_is_refused(pipeline: InMemoryPipeline) -> None:
    for name in ("health", "money"):
        await run(pipeline, "declare_category", name=name, description=HEALTH)
    refused = await refusal(pipeline, "rename_category", name="health", new_name="money")
    assert refused == ("conflict", "arguments.new_name")
    refused = await refusal(pipeline, "rename_category", name="never", new_name="other")
    assert refused == ("not_found", "arguments.name")
    refused = await refusal(pipeline, "rename_category", name="health", new_name=" ")
    assert refused == ("invalid_value", "arguments.new_name")
    assert await refusal(pipeline, "delete_category", name="never") == ("not_found", "arguments.name")


async def test_deleted_category_leaves_its_items_uncategorised(pipeline: InMemoryPipeline) -> None:
    await run(pipeline, "declare_category", name="health", description=HEALTH)
    await run(pipeline, "declare_category", name="money", description=MONEY)
    await remember_turns(pipeline, DENTIST, RENT)
    deleted = await run(pipeline, "delete_category", name="health")
    assert deleted["name"] == "health"
    assert deleted["size"] == 1
    assert await filed(pipeline) == {"money": {RENT}}
    assert (await run(pipeline, "list_categories"))["uncategorised"] == 1
    assert (await run(pipeline, "get_memory", memory_id=item_of(pipeline, DENTIST).memory_id))["categories"] == []
    assert await refusal(pipeline, "delete_category", name="health") == ("not_found", "arguments.name")


async def test_nothing_brings_a_deleted_category_back_but_a_declaration(pipeline: InMemoryPipeline) -> None:
    await run(pipeline, "declare_category", name="health", description=HEALTH)
    await remember_turns(pipeline, DENTIST)
    await run(pipeline, "delete_category", name="health")
    await run(pipeline, "rebuild")
    await consolidate(pipeline)
    await remember_turns(pipeline, DENTIST)
    assert await filed(pipeline) == {}
    assert assigned_names(pipeline) == set()
    assert (await run(pipeline, "declare_category", name="health", description=HEALTH))["size"] == 1


async def test_deployment_category_can_be_deleted_and_renamed_in_a_scope(tmp_path: Path) -> None:
    deployment = {"categories": {"health": HEALTH, "money": MONEY}}
    async with InMemoryPipeline(tmp_path, more_settings=deployment).running() as pipeline:
        for user in ("u1", "u2"):
            await remember_turns(pipeline, DENTIST, RENT, scope={"user_id": user})
        await run(pipeline, "delete_category", name="health")
        await run(pipeline, "rename_category", name="money", new_name="flat")
        await run(pipeline, "rename_category", name="money", new_name="flat")
        await run(pipeline, "rebuild")
        assert await filed(pipeline) == {"flat": {RENT}}
        assert await filed(pipeline, user="u2") == {"health": {DENTIST}, "money": {RENT}}
        await run(pipeline, "declare_category", name="health", description=HEALTH)
        assert await filed(pipeline) == {"flat": {RENT}, "health": {DENTIST}}


async def test_changes_are_limited_to_the_scope_of_the_command(pipeline: InMemoryPipeline) -> None:
    others: tuple[Json, ...] = ({"user": "u2"}, {"project": "p2"})
    for where in ({}, *others):
        for name, description in (("health", HEALTH), ("money", MONEY)):
            await run(pipeline, "declare_category", name=name, description=description, **where)
        scope = {"user_id": where.get("user", "u1"), "project_id": where.get("project", "default")}
        await remember_turns(pipeline, DENTIST, RENT, scope=scope)
    await run(pipeline, "rename_category", name="health", new_name="body")
    await run(pipeline, "delete_category", name="money")
    assert await filed(pipeline) == {"body": {DENTIST}}
    for where in others:
        assert await filed(pipeline, **where) == {"health": {DENTIST}, "money": {RENT}}


async def test_late_vector_files_an_item_under_current_names_only(pipeline: InMemoryPipeline) -> None:
    for name, description in (("health", HEALTH), ("money", MONEY)):
        await run(pipeline, "declare_category", name=name, description=description)
    await remember_turns(pipeline, "Hello there.", DENTIST)
    await run(pipeline, "rename_category", name="health", new_name="body")
    await run(pipeline, "rename_category", name="body", new_name="fitness")
    await run(pipeline, "delete_category", name="money")
    item = item_of(pipeline, DENTIST)
    late = Embedded(
        memory_id=item.memory_id,
        content_hash=item.content_hash,
        mode=item.mode,
        status="ready",
        space=item.embedding.space,
        at=pipeline.clock.now(),
        categories=tuple(CategoryAssignment(name=name, confidence=0.99) for name in ("health", "money", "never")),
    )
    await pipeline.topics.append(Outgoing(pipeline.names.embedded, b"u1", late.model_dump_json(by_alias=True).encode()))
    await pipeline.topics.settled()
    assert await filed(pipeline) == {"fitness": {DENTIST}}
    assert assigned_names(pipeline) == {"fitness"}


async def test_superseded_items_follow_and_leave_as_well(pipeline: InMemoryPipeline) -> None:
    await run(pipeline, "declare_category", name="deploying", description="the deploy target is")
    await remember_turns(pipeline, "The deploy target is fly.io now.", "No, the new deploy target is AWS, not fly.io.")
    assert any(memory.superseded_by and memory.item and memory.item.categories for memory in pipeline.memories.all())
    await run(pipeline, "rename_category", name="deploying", new_name="hosting")
    assert assigned_names(pipeline) == {"hosting"}
    await run(pipeline, "delete_category", name="hosting")
    assert assigned_names(pipeline) == set()
