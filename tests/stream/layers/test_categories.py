"""Categories, seen from outside: declared, filled with what is found in turns, summed up, and emptied again."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.language_model import ONE_PROFILE
from tests.fakes.tables.categories import FakeCategories
from tests.worlds.in_memory_pipeline import InMemoryPipeline, commanded

SCOPE = {"user_id": "u1", "project_id": "default"}
HEALTH = "dentist appointment, allergic penicillin"
DENTIST = "My dentist appointment is on Tuesday."
PENICILLIN = "I am allergic to penicillin."
RENT = "My rent is 900 euros a month."
LISBON = "My flight to Lisbon is on Friday."


async def declare(
    pipeline: InMemoryPipeline, name: str = "health", description: str = HEALTH, **how: Any
) -> dict[str, Any]:
    """Declare a category."""
    result: dict[str, Any] = (await pipeline.command("declare_category", name=name, description=description, **how))[
        "result"
    ]
    return result


async def told(pipeline: InMemoryPipeline, *texts: str, **fields: Any) -> None:
    """Say this, and wait until all of it is understood and embedded."""
    for text in texts:
        await pipeline.remember(text, turn_id=text, **fields)
    await pipeline.topics.settled()


async def shown(pipeline: InMemoryPipeline, name: str = "health", **how: Any) -> dict[str, Any]:
    """A category as a command shows it."""
    result: dict[str, Any] = (await pipeline.command("get_category", name=name, **how))["result"]
    return result


async def listed(pipeline: InMemoryPipeline, **how: Any) -> dict[str, Any]:
    """All categories."""
    result: dict[str, Any] = (await pipeline.command("list_categories", **how))["result"]
    return result


def texts(items: list[dict[str, Any]]) -> set[str]:
    return {item["text"] for item in items}


def kept(pipeline: InMemoryPipeline) -> str:
    """All that the table has of the scope, as text."""
    return "".join(pipeline.categories.get(partition, SCOPE).model_dump_json() for partition in range(4))


async def test_items_are_filed_under_the_matching_category_only(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST, PENICILLIN, RENT)
    health = await shown(pipeline)
    assert (health["name"], health["description"], health["size"]) == ("health", HEALTH, 2)
    assert texts(health["items"]) == texts(health["anchors"]) == {DENTIST, PENICILLIN}
    assert set(health["summary"].split("\n")) == {DENTIST, PENICILLIN}
    every = await listed(pipeline, include_summary=True, include_items=True)
    assert every["uncategorised"] == 1
    assert [(one["summary"], texts(one["items"])) for one in every["categories"]] == [
        (health["summary"], {DENTIST, PENICILLIN})
    ]


async def test_a_list_shows_summaries_and_items_only_where_they_are_asked_for(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST)
    [plain] = (await listed(pipeline))["categories"]
    assert plain == {"name": "health", "description": HEALTH, "version": 1, "size": 1, "declared": True}


async def test_earlier_items_are_in_a_category_when_its_declaration_is_answered(pipeline: InMemoryPipeline) -> None:
    await told(pipeline, DENTIST, PENICILLIN, RENT)
    assert (await listed(pipeline))["uncategorised"] == 3
    declared = await declare(pipeline)
    assert declared["size"] == 2
    assert (await listed(pipeline))["uncategorised"] == 1
    assert texts((await shown(pipeline))["items"]) == {DENTIST, PENICILLIN}


async def test_new_description_removes_and_adds_matching_items(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST, RENT)
    again = await declare(pipeline, description="rent, euros a month")
    assert again["version"] == 2
    assert texts((await shown(pipeline))["items"]) == {RENT}
    assert DENTIST not in kept(pipeline)


async def test_the_same_declaration_again_changes_nothing(pipeline: InMemoryPipeline) -> None:
    await told(pipeline, DENTIST)
    first = await declare(pipeline)
    writes = pipeline.categories.writes
    assert await declare(pipeline) == first
    assert pipeline.categories.writes == writes
    without = (await pipeline.command("declare_category", name="health"))["result"]
    assert without["description"] == HEALTH


async def test_a_category_is_in_its_scope_alone(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST)
    await told(pipeline, PENICILLIN, scope={"user_id": "u1", "project_id": "p2"})
    for elsewhere in ({"project": "p2"}, {"user": "u2"}):
        reply = await pipeline.command("get_category", name="health", **elsewhere)
        assert (reply["error"]["code"], reply["error"]["field"]) == ("not_found", "arguments.name")
        assert (await listed(pipeline, **elsewhere))["categories"] == []
    assert texts((await shown(pipeline))["items"]) == {DENTIST}


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "line\nend", "bell\x07", 7])
async def test_a_name_that_is_none_is_refused(pipeline: InMemoryPipeline, name: object) -> None:
    reply = await pipeline.command("declare_category", name=name, description="x")
    assert (reply["error"]["code"], reply["error"]["field"]) == ("invalid_value", "arguments.name")


async def test_a_name_may_be_of_any_script(pipeline: InMemoryPipeline) -> None:
    name = "Gesundheit & 健康 👩‍⚕️"
    await declare(pipeline, name)
    await told(pipeline, DENTIST)
    assert texts((await shown(pipeline, name))["items"]) == {DENTIST}


async def test_what_is_forgotten_is_seen_nowhere_and_kept_nowhere(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST, PENICILLIN)
    await shown(pipeline)
    assert PENICILLIN in kept(pipeline)
    await pipeline.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    health = await shown(pipeline)
    assert (health["size"], texts(health["items"]), texts(health["anchors"])) == (1, {DENTIST}, {DENTIST})
    assert health["summary"] == DENTIST
    await pipeline.topics.settled()
    assert PENICILLIN not in kept(pipeline)


async def test_what_is_forgotten_leaves_the_table_also_when_nobody_asks(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST, PENICILLIN)
    await shown(pipeline)
    await pipeline.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    await pipeline.topics.settled()
    assert PENICILLIN not in kept(pipeline)
    assert DENTIST in kept(pipeline)


@pytest.mark.parametrize("whole", ["project", "user"])
async def test_forgetting_everything_keeps_declarations_and_no_text(pipeline: InMemoryPipeline, whole: str) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST, PENICILLIN)
    await shown(pipeline)
    command = commanded("forget") | {"arguments": {whole: True}}
    assert (await pipeline.ask(pipeline.names.commands, command))["result"] == {"forgotten": 4}
    assert "I am allergic" not in kept(pipeline)
    assert "dentist appointment is" not in kept(pipeline)
    health = await shown(pipeline)
    assert (health["description"], health["size"], health["summary"], health["anchors"]) == (HEALTH, 0, None, [])


async def test_a_summary_follows_its_members_when_enough_of_them_are_new(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline)
    await told(pipeline, DENTIST)
    first = await shown(pipeline)
    await told(pipeline, PENICILLIN)
    assert (await shown(pipeline))["summary"] == first["summary"]
    more = [f"I am allergic to {thing}." for thing in ("latex", "pollen", "nuts")]
    await told(pipeline, *more)
    after = await shown(pipeline)
    assert after["version"] == first["version"] + 1
    assert {DENTIST, PENICILLIN, *more} >= set(after["summary"].split("\n")) > {DENTIST}
    assert await shown(pipeline) == after


async def test_deployment_categories_are_in_every_scope_and_overridable(tmp_path: Path) -> None:
    deployment = FakeCategories({"health": HEALTH, "travel": "flight, Lisbon"})
    async with InMemoryPipeline(tmp_path, categories=deployment).running() as pipeline:
        for user in ("u1", "u2"):
            await told(pipeline, DENTIST, LISBON, scope={"user_id": user})
        await declare(pipeline, "travel", "hotels", user="u2")
        for user, travels in (("u1", {LISBON}), ("u2", set[str]())):
            every = (await listed(pipeline, include_items=True, user=user))["categories"]
            assert [(one["name"], texts(one["items"])) for one in every] == [("health", {DENTIST}), ("travel", travels)]


async def test_model_assigns_items_to_existing_categories_only(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as pipeline:
        found = [{"name": "money", "confidence": 0.9}, {"name": "no such thing", "confidence": 0.9}]
        pipeline.language.answers = lambda _: {
            "categories": found,
            "items": [{"kind": "fact", "text": DENTIST, "quote": DENTIST}],
        }
        await declare(pipeline, "money", "euros")
        await told(pipeline, DENTIST)
        await pipeline.until(lambda: pipeline.memory(DENTIST).reading.status == "model")
        await pipeline.topics.settled()
        [item] = (await shown(pipeline, "money"))["items"]
        assert (item["text"], item["confidence"]) == (DENTIST, 0.9)
        assert all("no such thing" not in memory.model_dump_json() for memory in pipeline.memories.all())
        # Another look by the vectors alone does not take back what a model has said.
        await declare(pipeline)
        assert texts((await shown(pipeline, "money"))["items"]) == texts((await shown(pipeline))["items"]) == {DENTIST}
