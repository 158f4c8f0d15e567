"""Categories, seen from outside: declared, filled with what is found in turns, summed up, and emptied again."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.categories import FakeCategories
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryMap, commanded

SCOPE = {"user_id": "u1", "project_id": "default"}
HEALTH = "dentist appointment, allergic penicillin"
DENTIST = "My dentist appointment is on Tuesday."
PENICILLIN = "I am allergic to penicillin."
RENT = "My rent is 900 euros a month."
LISBON = "My flight to Lisbon is on Friday."


async def declare(the_map: InMemoryMap, name: str = "health", description: str = HEALTH, **how: Any) -> dict[str, Any]:
    """Declare a category."""
    result: dict[str, Any] = (await the_map.command("declare_category", name=name, description=description, **how))[
        "result"
    ]
    return result


async def told(the_map: InMemoryMap, *texts: str, **fields: Any) -> None:
    """Say this, and wait until all of it is understood and embedded."""
    for text in texts:
        await the_map.remember(text, turn_id=text, **fields)
    await the_map.topics.settled()


async def shown(the_map: InMemoryMap, name: str = "health", **how: Any) -> dict[str, Any]:
    """A category as a command shows it."""
    result: dict[str, Any] = (await the_map.command("get_category", name=name, **how))["result"]
    return result


async def listed(the_map: InMemoryMap, **how: Any) -> dict[str, Any]:
    """All categories."""
    result: dict[str, Any] = (await the_map.command("list_categories", **how))["result"]
    return result


def texts(items: list[dict[str, Any]]) -> set[str]:
    return {item["text"] for item in items}


def kept(the_map: InMemoryMap) -> str:
    """All that the table has of the scope, as text."""
    return "".join(the_map.categories.get(partition, SCOPE).model_dump_json() for partition in range(4))


async def test_what_is_found_in_turns_is_under_the_category_that_it_fits_and_nothing_else_is(
    the_map: InMemoryMap,
) -> None:
    await declare(the_map)
    await told(the_map, DENTIST, PENICILLIN, RENT)
    health = await shown(the_map)
    assert (health["name"], health["description"], health["size"]) == ("health", HEALTH, 2)
    assert texts(health["items"]) == texts(health["anchors"]) == {DENTIST, PENICILLIN}
    assert set(health["summary"].split("\n")) == {DENTIST, PENICILLIN}
    every = await listed(the_map, include_summary=True, include_items=True)
    assert every["uncategorised"] == 1
    assert [(one["summary"], texts(one["items"])) for one in every["categories"]] == [
        (health["summary"], {DENTIST, PENICILLIN})
    ]


async def test_a_list_shows_summaries_and_items_only_where_they_are_asked_for(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST)
    [plain] = (await listed(the_map))["categories"]
    assert plain == {"name": "health", "description": HEALTH, "version": 1, "size": 1, "declared": True}


async def test_what_was_there_before_a_category_is_under_it_when_its_declaration_is_answered(
    the_map: InMemoryMap,
) -> None:
    await told(the_map, DENTIST, PENICILLIN, RENT)
    assert (await listed(the_map))["uncategorised"] == 3
    declared = await declare(the_map)
    assert declared["size"] == 2
    assert (await listed(the_map))["uncategorised"] == 1
    assert texts((await shown(the_map))["items"]) == {DENTIST, PENICILLIN}


async def test_another_description_takes_out_what_fits_no_more_and_takes_in_what_fits_now(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST, RENT)
    again = await declare(the_map, description="rent, euros a month")
    assert again["version"] == 2
    assert texts((await shown(the_map))["items"]) == {RENT}
    assert DENTIST not in kept(the_map)


async def test_the_same_declaration_again_changes_nothing(the_map: InMemoryMap) -> None:
    await told(the_map, DENTIST)
    first = await declare(the_map)
    writes = the_map.categories.writes
    assert await declare(the_map) == first
    assert the_map.categories.writes == writes
    without = (await the_map.command("declare_category", name="health"))["result"]
    assert without["description"] == HEALTH


async def test_a_category_is_in_its_scope_alone(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST)
    await told(the_map, PENICILLIN, scope={"user_id": "u1", "project_id": "p2"})
    for elsewhere in ({"project": "p2"}, {"user": "u2"}):
        reply = await the_map.command("get_category", name="health", **elsewhere)
        assert (reply["error"]["code"], reply["error"]["field"]) == ("not_found", "arguments.name")
        assert (await listed(the_map, **elsewhere))["categories"] == []
    assert texts((await shown(the_map))["items"]) == {DENTIST}


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "line\nend", "bell\x07", 7])
async def test_a_name_that_is_none_is_refused(the_map: InMemoryMap, name: object) -> None:
    reply = await the_map.command("declare_category", name=name, description="x")
    assert (reply["error"]["code"], reply["error"]["field"]) == ("invalid_value", "arguments.name")


async def test_a_name_may_be_of_any_script(the_map: InMemoryMap) -> None:
    name = "Gesundheit & 健康 👩‍⚕️"
    await declare(the_map, name)
    await told(the_map, DENTIST)
    assert texts((await shown(the_map, name))["items"]) == {DENTIST}


async def test_what_is_forgotten_is_seen_nowhere_and_kept_nowhere(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST, PENICILLIN)
    await shown(the_map)
    assert PENICILLIN in kept(the_map)
    await the_map.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    health = await shown(the_map)
    assert (health["size"], texts(health["items"]), texts(health["anchors"])) == (1, {DENTIST}, {DENTIST})
    assert health["summary"] == DENTIST
    await the_map.topics.settled()
    assert PENICILLIN not in kept(the_map)


async def test_what_is_forgotten_leaves_the_table_also_when_nobody_asks(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST, PENICILLIN)
    await shown(the_map)
    await the_map.command("forget", conversation_id="c1", turn_id=PENICILLIN)
    await the_map.topics.settled()
    assert PENICILLIN not in kept(the_map)
    assert DENTIST in kept(the_map)


@pytest.mark.parametrize("whole", ["project", "user"])
async def test_forgetting_everything_leaves_what_was_declared_and_no_word_of_what_was_said(
    the_map: InMemoryMap, whole: str
) -> None:
    await declare(the_map)
    await told(the_map, DENTIST, PENICILLIN)
    await shown(the_map)
    command = commanded("forget") | {"arguments": {whole: True}}
    assert (await the_map.ask(the_map.names.commands, command))["result"] == {"forgotten": 4}
    assert "I am allergic" not in kept(the_map)
    assert "dentist appointment is" not in kept(the_map)
    health = await shown(the_map)
    assert (health["description"], health["size"], health["summary"], health["anchors"]) == (HEALTH, 0, None, [])


async def test_a_summary_follows_its_members_when_enough_of_them_are_new(the_map: InMemoryMap) -> None:
    await declare(the_map)
    await told(the_map, DENTIST)
    first = await shown(the_map)
    await told(the_map, PENICILLIN)
    assert (await shown(the_map))["summary"] == first["summary"]
    more = [f"I am allergic to {thing}." for thing in ("latex", "pollen", "nuts")]
    await told(the_map, *more)
    after = await shown(the_map)
    assert after["version"] == first["version"] + 1
    assert {DENTIST, PENICILLIN, *more} >= set(after["summary"].split("\n")) > {DENTIST}
    assert await shown(the_map) == after


async def test_the_deployments_categories_are_in_every_scope_and_a_user_may_say_them_otherwise(tmp_path: Path) -> None:
    deployment = FakeCategories({"health": HEALTH, "travel": "flight, Lisbon"})
    async with InMemoryMap(tmp_path, categories=deployment).running() as the_map:
        for user in ("u1", "u2"):
            await told(the_map, DENTIST, LISBON, scope={"user_id": user})
        await declare(the_map, "travel", "hotels", user="u2")
        for user, travels in (("u1", {LISBON}), ("u2", set[str]())):
            every = (await listed(the_map, include_items=True, user=user))["categories"]
            assert [(one["name"], texts(one["items"])) for one in every] == [("health", {DENTIST}), ("travel", travels)]


async def test_a_language_model_puts_what_a_turn_says_under_categories_that_there_are(tmp_path: Path) -> None:
    async with InMemoryMap(tmp_path, profiles=ONE_PROFILE).running() as the_map:
        found = [{"name": "money", "confidence": 0.9}, {"name": "no such thing", "confidence": 0.9}]
        the_map.language.answers = lambda _: {
            "categories": found,
            "items": [{"kind": "fact", "text": DENTIST, "quote": DENTIST}],
        }
        await declare(the_map, "money", "euros")
        await told(the_map, DENTIST)
        await the_map.until(lambda: the_map.memory(DENTIST).reading.status == "model")
        await the_map.topics.settled()
        [item] = (await shown(the_map, "money"))["items"]
        assert (item["text"], item["confidence"]) == (DENTIST, 0.9)
        assert all("no such thing" not in memory.model_dump_json() for memory in the_map.memories.all())
        # Another look by the vectors alone does not take back what a model has said.
        await declare(the_map)
        assert texts((await shown(the_map, "money"))["items"]) == texts((await shown(the_map))["items"]) == {DENTIST}
