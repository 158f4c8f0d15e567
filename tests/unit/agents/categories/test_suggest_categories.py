"""`SuggestCategories`: what is suggested and proposed, without changes."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from agents.categories.suggest_categories import SuggestCategories
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment, Item
from tests.harnesses.categories import CategoriesHarness
from tests.harnesses.worker import HERE

SOUP = "Simmer soup with onion, carrot, leek; season broth {}."
CODE = "Compiler rejects branch: unit test module {} fails."
ODD = "alpha{0} beta{0} gamma{0} delta{0}"


class SuggestHarness(CategoriesHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        stores = self.worker.stores.at(HERE)
        self.suggest = SuggestCategories(
            stores.categories, stores.memories, self.members, self.worker.index, self.worker.spaces
        )

    async def items(self, template: str, count: int, *names: str, **fields: Any) -> list[str]:
        """Store items of one form in these categories; return their ids."""
        texts = [template.format(number) for number in range(count)]
        stored = await self.store_items(*texts, **fields)
        assigned = tuple(CategoryAssignment(name=name, confidence=0.9) for name in names)
        for memory in stored:
            self.put(memory.model_copy(update={"item": Item(categories=assigned)}))
        return [memory.memory_id for memory in stored]

    async def report(self, **scope: str) -> dict[str, Any]:
        command = Command(command="suggest_categories", scope=Scope(**{"user_id": "u1", **scope}))
        result = await self.suggest.suggest_categories(command, 1)
        assert result.change is None
        return result.result

    def declare(self, *names: str) -> None:
        for name in names:
            self.table.declare(name, "", {"user_id": "u1", "project_id": "default"}, HERE)


@pytest.fixture
async def harness(tmp_path: Path) -> SuggestHarness:
    harness = SuggestHarness(tmp_path)
    await harness.items(ODD, 20)
    return harness


async def test_items_in_no_category_are_suggested_as_one(harness: SuggestHarness) -> None:
    soup = await harness.items(SOUP, 6)
    [suggestion] = (await harness.report())["suggestions"]
    assert set(soup) <= set(suggestion["memory_ids"])


async def test_suggestion_has_a_name_a_description_and_examples(harness: SuggestHarness) -> None:
    await harness.items(SOUP, 6)
    [suggestion] = (await harness.report())["suggestions"]
    assert set(suggestion["name"].split("-")) <= set(suggestion["description"].split(", "))
    assert ["soup" in example["text"] for example in suggestion["examples"]] == [True] * 3


async def test_items_of_a_category_are_not_suggested(harness: SuggestHarness) -> None:
    harness.declare("kitchen")
    await harness.items(SOUP, 6, "kitchen")
    assert (await harness.report())["suggestions"] == []


async def test_categories_of_one_topic_would_be_merged_into_the_larger(harness: SuggestHarness) -> None:
    harness.declare("kitchen", "soups")
    await harness.items(SOUP, 4, "kitchen")
    await harness.items(SOUP + " Again.", 6, "soups")
    [merge] = (await harness.report())["diff"]
    assert merge == {"op": "merge_categories", "before": {"soups": 6, "kitchen": 4}, "after": {"soups": 10}}


async def test_category_of_two_topics_would_be_split(harness: SuggestHarness) -> None:
    harness.declare("life")
    soup = await harness.items(SOUP, 6, "life")
    await harness.items(CODE, 5, "life")
    [split] = (await harness.report())["diff"]
    assert split["before"] == {"life": 11}
    assert sorted(split["after"].values()) == [5, 6]
    assert set(split["into"][0]["memory_ids"]) == set(soup)


async def test_category_of_one_topic_is_left_alone(harness: SuggestHarness) -> None:
    harness.declare("kitchen", "work")
    await harness.items(SOUP, 6, "kitchen")
    await harness.items(CODE, 6, "work")
    assert (await harness.report())["diff"] == []


async def test_items_of_another_project_are_not_looked_at(harness: SuggestHarness) -> None:
    await harness.items(SOUP, 6)
    report = await harness.report(project_id="other")
    assert report == {"suggestions": [], "diff": [], "looked_at": 0}


async def test_without_a_model_nothing_is_suggested(harness: SuggestHarness) -> None:
    await harness.items(SOUP, 6)
    harness.worker.embedders.missing("general")
    assert (await harness.report())["looked_at"] == 0


async def test_report_changes_nothing(harness: SuggestHarness) -> None:
    harness.declare("life")
    await harness.items(SOUP, 6, "life")
    await harness.items(CODE, 5, "life")
    records = deepcopy(list(harness.worker.memories.all()))
    first = await harness.report()
    assert await harness.report() == first
    assert list(harness.worker.memories.all()) == records
