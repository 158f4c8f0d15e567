"""Categories through the whole pipeline: declared, filled with items, summarised and emptied."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message

SCOPE = {"user_id": "u1", "project_id": "default"}
HEALTH = "dentist appointment, allergic penicillin"
DENTIST = "My dentist appointment is on Tuesday."
PENICILLIN = "I am allergic to penicillin."
RENT = "My rent is 900 euros a month."
LISBON = "My flight to Lisbon is on Friday."


async def declare(
    pipeline: InMemoryPipeline, name: str = "health", description: str = HEALTH, **how: Any
) -> dict[str, Any]:
    result: dict[str, Any] = (await pipeline.command("declare_category", name=name, description=description, **how))[
        "result"
    ]
    return result


async def remember_turns(pipeline: InMemoryPipeline, *texts: str, **fields: Any) -> None:
    """Remember turns and wait until they are understood and embedded."""
    for text in texts:
        await pipeline.remember(text, turn_id=text, **fields)
    await pipeline.topics.settled()


async def get_category(pipeline: InMemoryPipeline, name: str = "health", **how: Any) -> dict[str, Any]:
    result: dict[str, Any] = (await pipeline.command("get_category", name=name, **how))["result"]
    return result


async def list_categories(pipeline: InMemoryPipeline, **how: Any) -> dict[str, Any]:
    result: dict[str, Any] = (await pipeline.command("list_categories", **how))["result"]
    return result


def texts(items: list[dict[str, Any]]) -> set[str]:
    return {item["text"] for item in items}


def stored_text(pipeline: InMemoryPipeline) -> str:
    return "".join(pipeline.categories.get(partition, SCOPE).model_dump_json() for partition in range(4))


def stored_projects(pipeline: InMemoryPipeline, user: str) -> list[str]:
    every = [pipeline.categories.scopes(partition, user) for partition in range(4)]
    return sorted(scope["project_id"] for each in every for scope in each)


async def test_items_are_filed_under_the_matching_category_only(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST, PENICILLIN, RENT)
    health = await get_category(pipeline)
    assert health["name"] == "health"
    assert health["description"] == HEALTH
    assert health["size"] == 2
    assert texts(health["items"]) == texts(health["anchors"]) == {DENTIST, PENICILLIN}
    assert set(health["summary"].split("\n")) == {DENTIST, PENICILLIN}
    every = await list_categories(pipeline, include_summary=True, include_items=True)
    assert every["uncategorised"] == 1
    assert [(category["summary"], texts(category["items"])) for category in every["categories"]] == [
        (health["summary"], {DENTIST, PENICILLIN})
    ]


async def test_list_has_summaries_and_items_only_on_request(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST)
    [plain] = (await list_categories(pipeline))["categories"]
    assert plain == {"name": "health", "description": HEALTH, "version": 1, "size": 1, "declared": True}


async def test_declaration_assigns_earlier_items_before_the_reply(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, DENTIST, PENICILLIN, RENT)
    assert (await list_categories(pipeline))["uncategorised"] == 3
    declared = await declare(pipeline)
    assert declared["size"] == 2
    assert (await list_categories(pipeline))["uncategorised"] == 1
    assert texts((await get_category(pipeline))["items"]) == {DENTIST, PENICILLIN}


async def test_new_description_removes_and_adds_matching_items(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST, RENT)
    again = await declare(pipeline, description="rent, euros a month")
    assert again["version"] == 2
    assert texts((await get_category(pipeline))["items"]) == {RENT}
    assert DENTIST not in stored_text(pipeline)


async def test_same_declaration_again_changes_nothing(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, DENTIST)
    first = await declare(pipeline)
    stored = dict(pipeline.tables.rows("categories"))
    assert await declare(pipeline) == first
    assert pipeline.tables.rows("categories") == stored
    without = (await pipeline.command("declare_category", name="health"))["result"]
    assert without["description"] == HEALTH


async def test_category_exists_only_in_its_scope(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST)
    await remember_turns(pipeline, PENICILLIN, scope={"user_id": "u1", "project_id": "p2"})
    for elsewhere in ({"project": "p2"}, {"user": "u2"}):
        reply = await pipeline.command("get_category", name="health", **elsewhere)
        assert reply["error"]["code"] == "not_found"
        assert reply["error"]["field"] == "arguments.name"
        assert (await list_categories(pipeline, **elsewhere))["categories"] == []
    assert texts((await get_category(pipeline))["items"]) == {DENTIST}


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "line\nend", "bell\x07", 7])
async def test_invalid_category_name_is_rejected(pipeline: InMemoryPipeline, name: object) -> None:
    reply = await pipeline.command("declare_category", name=name, description="x")
    assert reply["error"]["code"] == "invalid_value"
    assert reply["error"]["field"] == "arguments.name"


async def test_name_may_be_of_any_script(pipeline: InMemoryPipeline) -> None:
    name = "Gesundheit & 健康 👩‍⚕️"
    await declare(pipeline, name)
    await remember_turns(pipeline, DENTIST)
    assert texts((await get_category(pipeline, name))["items"]) == {DENTIST}


async def test_forgotten_texts_are_neither_shown_nor_stored(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST, PENICILLIN)
    await get_category(pipeline)
    assert PENICILLIN in stored_text(pipeline)
    await pipeline.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    health = await get_category(pipeline)
    assert health["size"] == 1
    assert texts(health["items"]) == {DENTIST}
    assert texts(health["anchors"]) == {DENTIST}
    assert health["summary"] == DENTIST
    await pipeline.topics.settled()
    assert PENICILLIN not in stored_text(pipeline)


async def test_forgotten_item_leaves_the_table_without_a_request(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST, PENICILLIN)
    await get_category(pipeline)
    await pipeline.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    await pipeline.topics.settled()
    assert PENICILLIN not in stored_text(pipeline)
    assert DENTIST in stored_text(pipeline)


@pytest.mark.parametrize("whole", ["project", "user"])
async def test_categories_go_with_a_forgotten_project_or_user(pipeline: InMemoryPipeline, whole: str) -> None:
    for where in ({}, {"project": "p2"}, {"project": "empty"}, {"user": "u2"}):
        await declare(pipeline, **where)
    await remember_turns(pipeline, DENTIST, PENICILLIN)
    await get_category(pipeline)
    command = command_message("forget") | {"arguments": {whole: True}}
    assert (await pipeline.ask(pipeline.names.commands, command))["result"]["forgotten"] == 4
    assert (await pipeline.command("get_category", name="health"))["error"]["code"] == "not_found"
    for project in ("p2", "empty") if whole == "user" else ():
        assert (await list_categories(pipeline, project=project))["categories"] == []
    assert stored_projects(pipeline, "u1") == ([] if whole == "user" else ["empty", "p2"])
    assert (await get_category(pipeline, user="u2"))["description"] == HEALTH


async def test_categories_declared_after_a_forget_work_as_new_ones(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": {"user": True}})
    await remember_turns(pipeline, DENTIST)
    assert (await list_categories(pipeline))["uncategorised"] == 1
    assert (await declare(pipeline))["version"] == 1
    assert texts((await get_category(pipeline))["items"]) == {DENTIST}


async def test_summary_follows_its_members_when_enough_of_them_are_new(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await remember_turns(pipeline, DENTIST)
    first = await get_category(pipeline)
    await remember_turns(pipeline, PENICILLIN)
    assert (await get_category(pipeline))["summary"] == first["summary"]
    more = [f"I am allergic to {thing}." for thing in ("latex", "pollen", "nuts")]
    await remember_turns(pipeline, *more)
    after = await get_category(pipeline)
    assert after["version"] == first["version"] + 1
    assert {DENTIST, PENICILLIN, *more} >= set(after["summary"].split("\n")) > {DENTIST}
    assert await get_category(pipeline) == after


async def test_deployment_categories_are_in_every_scope_and_overridable(tmp_path: Path) -> None:
    deployment = {"categories": {"health": HEALTH, "travel": "flight, Lisbon"}}
    async with InMemoryPipeline(tmp_path, more_settings=deployment).running() as pipeline:
        for user in ("u1", "u2"):
            await remember_turns(pipeline, DENTIST, LISBON, scope={"user_id": user})
        await declare(pipeline, "travel", "hotels", user="u2")
        for user, travels in (("u1", {LISBON}), ("u2", set[str]())):
            every = (await list_categories(pipeline, include_items=True, user=user))["categories"]
            assert [(category["name"], texts(category["items"])) for category in every] == [
                ("health", {DENTIST}),
                ("travel", travels),
            ]


async def test_model_assigns_items_to_existing_categories_only(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as pipeline:
        found = [{"name": "money", "confidence": 0.9}, {"name": "no such thing", "confidence": 0.9}]
        pipeline.language.answers = lambda _: {
            "categories": found,
            "items": [{"kind": "fact", "text": DENTIST, "quote": DENTIST}],
        }
        await declare(pipeline, "money", "euros")
        await remember_turns(pipeline, DENTIST)
        await pipeline.until(lambda: pipeline.memory(DENTIST).reading.status == "model")
        await pipeline.topics.settled()
        [item] = (await get_category(pipeline, "money"))["items"]
        assert item["text"] == DENTIST
        assert item["confidence"] == 0.9
        assert all("no such thing" not in memory.model_dump_json() for memory in pipeline.memories.all())
        # Another match by vectors alone does not undo a model's assignment.
        await declare(pipeline)
        assert (
            texts((await get_category(pipeline, "money"))["items"])
            == texts((await get_category(pipeline))["items"])
            == {DENTIST}
        )
