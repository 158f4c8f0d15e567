"""`Categorize`: summaries by rules and by a model, and their removal with their sources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.categories.refresh import RefreshCategories
from agents.ports.commands import Unbounded
from agents.rules.categories.taxonomy import declare_category
from schemas.messages.commands import Command
from schemas.models.language import Prompt
from schemas.scopes import Scope
from schemas.state.categories import Category, Taxonomy
from schemas.state.modes import GENERAL_MODE
from tests.harnesses.categories import DENTIST, HEALTH, PILLS, SCOPE, CategoriesHarness
from tests.harnesses.worker import HERE


@pytest.fixture
def harness(tmp_path: Path) -> CategoriesHarness:
    return CategoriesHarness(tmp_path)


async def test_newest_items_are_medoids_during_an_index_outage(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST, PILLS)
    harness.worker.index.down()
    shown = await harness.command("get_category", name="health")
    assert shown["summary"] == f"{PILLS}\n{DENTIST}"


async def test_summary_does_not_restore_texts_forgotten_meanwhile(
    harness: CategoriesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    [dentist, pills] = await harness.store_items(DENTIST, PILLS)
    ask = harness.worker.index.vectors

    async def forgotten_meanwhile(*asked: Any) -> Any:
        found = await ask(*asked)
        harness.worker.words.remove(HERE, pills.memory_id)
        harness.worker.memories.forget(HERE, pills.memory_id)
        return found

    monkeypatch.setattr(harness.worker.index, "vectors", forgotten_meanwhile)
    await harness.refreshing.refresh(SCOPE)
    category = harness.table.get(HERE, SCOPE).find("health") or Category(name="")
    assert category.summary == DENTIST
    assert category.anchors == (dentist.memory_id,)


async def test_description_changed_during_a_summary_persists(
    harness: CategoriesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST, PILLS)
    ask = harness.worker.index.vectors

    async def described_meanwhile(*asked: Any) -> Any:
        harness.table.declare("health", "anew", SCOPE, HERE)
        harness.table.declare("other", "fresh", SCOPE, HERE)
        return await ask(*asked)

    monkeypatch.setattr(harness.worker.index, "vectors", described_meanwhile)
    await harness.refreshing.refresh(SCOPE)
    taxonomy = harness.table.get(HERE, SCOPE)
    assert {category.name: category.description for category in taxonomy.all()} == {"health": "anew", "other": "fresh"}
    assert (taxonomy.categories["health"].summary or "").split("\n") == [PILLS, DENTIST]


def summing_up(text: str) -> Callable[[Prompt], dict[str, Any]]:
    return lambda _: {"summary": text}


async def test_summary_model_is_called_once_and_only_on_request(tmp_path: Path) -> None:
    harness = CategoriesHarness(tmp_path, asks=True)
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST, PILLS)
    harness.worker.language.answers = summing_up("Teeth\n and pills.")
    assert set((await harness.command("get_category", name="health"))["summary"].split("\n")) == {DENTIST, PILLS}
    assert harness.worker.language.asked == [], "reads do not wait for a model"
    [changed] = await harness.agent.refresh(SCOPE)
    assert changed.summary == "Teeth and pills."
    assert changed.profile == "default"
    assert changed.version == 3
    assert await harness.agent.refresh(SCOPE) == []
    [prompt] = harness.worker.language.asked
    assert DENTIST in prompt.user
    assert DENTIST not in prompt.system
    assert HEALTH in prompt.user


async def test_summary_model_is_asked_with_the_prompt_of_the_mode(tmp_path: Path) -> None:
    harness = CategoriesHarness(tmp_path, asks=True)
    general = GENERAL_MODE.model_copy(update={"prompt_overrides": {"categorize": "By continent."}})
    harness.worker.modes.declare(general, boundary="u1", partition=HERE)
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST, PILLS)
    await harness.agent.refresh(SCOPE)
    [prompt] = harness.worker.language.asked
    assert "By continent." in prompt.user


@pytest.mark.parametrize("behaviour", ["down", "wrong", "empty"])
async def test_model_that_gives_no_summary_leaves_that_of_the_rules(tmp_path: Path, behaviour: Any) -> None:
    harness = CategoriesHarness(tmp_path, asks=True)
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST)
    if behaviour == "empty":
        harness.worker.language.answers = summing_up(" ")
    else:
        harness.worker.language.become(behaviour)
    [changed] = await harness.agent.refresh(SCOPE)
    assert changed.summary == DENTIST
    assert changed.profile is None


class FixedAllowance(Unbounded):
    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def may_spend(self, tokens: int) -> bool:
        return tokens <= self.tokens

    def spend(self, tokens: int) -> None:
        self.tokens -= tokens


@pytest.mark.parametrize(("tokens", "left", "summary"), [(9, 9, DENTIST), (5000, 4998, "Teeth.")])
async def test_summary_is_charged_to_the_allowance_and_extractive_without(
    tmp_path: Path, tokens: int, left: int, summary: str
) -> None:
    harness, purse = CategoriesHarness(tmp_path, asks=True), FixedAllowance(tokens)
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST)
    harness.worker.language.answers = summing_up("Teeth.")
    [changed] = await harness.agent.refresh(SCOPE, allowance=purse)
    assert changed.summary == summary
    assert purse.tokens == left


async def test_model_summary_is_removed_with_any_of_its_sources(tmp_path: Path) -> None:
    harness = CategoriesHarness(tmp_path, asks=True)
    await harness.command("declare_category", name="health", description=HEALTH)
    [_, pills] = await harness.store_items(DENTIST, PILLS)
    harness.worker.language.answers = summing_up("Teeth and pills.")
    await harness.agent.refresh(SCOPE)
    harness.worker.words.remove(HERE, pills.memory_id)
    harness.worker.memories.forget(HERE, pills.memory_id)
    shown = await harness.command("get_category", name="health")
    assert shown["summary"] == DENTIST
    assert shown["size"] == 1


@pytest.mark.parametrize(("arguments", "left"), [({"project": True}, {"p2"}), ({"user": True}, set[str]())])
async def test_forgetting_a_project_or_user_removes_its_categories_first(
    harness: CategoriesHarness, arguments: dict[str, bool], left: set[str]
) -> None:
    for project in ("default", "p2"):
        await harness.command("declare_category", Scope(user_id="u1", project_id=project), name="x", description=HEALTH)
        await harness.store_items(DENTIST, project=project)
        await harness.agent.refresh(SCOPE | {"project_id": project})
    command = Command(command="forget", scope=Scope(user_id="u1"), arguments=arguments)
    harness.agent.before_forgetting(command, 0)
    assert {scope["project_id"] for scope in harness.table.scopes(HERE, "u1")} == left
    taxonomies = {project: harness.table.get(HERE, SCOPE | {"project_id": project}) for project in ("default", "p2")}
    assert {project for project, taxonomy in taxonomies.items() if DENTIST in taxonomy.model_dump_json()} == left


async def test_redelivered_forget_keeps_categories_of_later_commands(harness: CategoriesHarness) -> None:
    harness.table.put(HERE, SCOPE, declare_category(Taxonomy(), "early", "", 4))
    forget = Command(command="forget", scope=Scope(user_id="u1"), arguments={"user": True})
    harness.agent.before_forgetting(forget, 5)
    harness.table.put(HERE, SCOPE, declare_category(harness.table.get(HERE, SCOPE), "late", "", 6))
    harness.agent.before_forgetting(forget, 5)
    assert [category.name for category in harness.table.get(HERE, SCOPE).all()] == ["late"]


async def test_members_removed_since_the_refresh_are_not_shown(
    harness: CategoriesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    [_, pills] = await harness.store_items(DENTIST, PILLS)
    await harness.agent.refresh(SCOPE)

    async def gone_after_it(*_: Any) -> list[Category]:
        harness.worker.words.remove(HERE, pills.memory_id)
        harness.worker.memories.forget(HERE, pills.memory_id)
        return []

    monkeypatch.setattr(RefreshCategories, "refresh", gone_after_it)
    shown = await harness.command("get_category", name="health")
    listed = await harness.command("list_categories", include_summary=True)
    assert shown["summary"] == listed["categories"][0]["summary"] == DENTIST
    assert [anchor["text"] for anchor in shown["anchors"]] == [DENTIST]
