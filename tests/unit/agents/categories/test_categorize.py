"""Categorize: declarations, membership, and writes of other agents meanwhile."""

from pathlib import Path

import pytest

from agents.categories import categorize
from agents.memory.files import FileItems
from agents.memory.write_memory import WriteMemory
from agents.rules.categories.taxonomy import MAX_CATEGORIES_PER_SCOPE
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Rejected, Unavailable
from schemas.internal.changes import Change
from schemas.internal.events import Remembered
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment, Item, Memory
from tests.builders.memories import made
from tests.harnesses.categories import DENTIST, HEALTH, PILLS, RENT, SCOPE, CategoriesHarness
from tests.harnesses.worker import HERE


@pytest.fixture
def harness(tmp_path: Path) -> CategoriesHarness:
    return CategoriesHarness(tmp_path)


async def test_summaries_are_category_members_but_turns_are_not(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST, origin="said")
    assert (await harness.command("list_categories"))["uncategorised"] == 0
    await harness.store_items(PILLS, origin="distilled")
    await harness.store_items(RENT)
    assert await harness.member_texts() == {PILLS}
    assert (await harness.command("list_categories"))["uncategorised"] == 1


async def test_superseded_item_is_neither_member_nor_uncategorised(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    [pills, rent, _] = await harness.store_items(PILLS, RENT, DENTIST)
    for memory in (pills, rent):
        harness.put(memory.model_copy(update={"superseded_by": "another"}))
    listed = await harness.command("list_categories")
    assert [category["size"] for category in listed["categories"]] == [1]
    assert listed["uncategorised"] == 0


async def test_scope_without_categories_embeds_nothing_for_them(harness: CategoriesHarness) -> None:
    await harness.store_items(DENTIST)
    assert harness.worker.embedders.model("general").passages == [DENTIST]


async def test_description_is_embedded_once_for_each_space(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST)
    before = len(harness.worker.embedders.model("general").passages)
    await harness.store_items(PILLS, RENT)
    assert len(harness.worker.embedders.model("general").passages) == before + 2


async def test_categories_per_scope_are_limited_and_each_can_be_redescribed(harness: CategoriesHarness) -> None:
    for number in range(MAX_CATEGORIES_PER_SCOPE):
        harness.table.declare(f"c{number}", "", SCOPE, HERE)
    with pytest.raises(Rejected, match="at most 256") as refused:
        await harness.command("declare_category", name="one more")
    assert refused.value.code == "too_large"
    assert refused.value.field == "arguments.name"
    assert (await harness.command("declare_category", name="c0", description=HEALTH))["version"] == 2


async def test_reassignment_covers_items_beyond_the_declaration_limit(
    harness: CategoriesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categorize, "MAX_ASSIGNED_ITEMS", 1)
    await harness.store_items(DENTIST, PILLS)
    declared = await harness.command("declare_category", name="health", description=HEALTH)
    assert declared["size"] == 1
    assert len(await harness.member_texts()) == 1
    assert len(await harness.agent.reassigned(SCOPE)) == 1


async def test_each_mode_is_matched_in_its_own_space(harness: CategoriesHarness) -> None:
    harness.worker.declare("code", "tiny48")
    await harness.store_items(DENTIST)
    await harness.store_items(PILLS, mode="code")
    await harness.command("declare_category", name="health", description=HEALTH)
    assert await harness.member_texts() == {DENTIST, PILLS}


async def test_category_declared_during_an_embedding_is_not_lost(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="money", description="rent, euros")
    [memory] = [harness.put(made(f"{DENTIST} {RENT}", user="u1", origin="extracted", type="semantic", item=Item()))]
    [report] = await harness.embed.write([await harness.embed.encode(Remembered(memory=memory), HERE)])
    assert {category.name for category in report.categories or ()} == {"money"}
    # `Embed` reports after the reply to the declaration.
    await harness.command("declare_category", name="health", description="dentist appointment")
    harness.worker.remember.embedded(report)
    item = harness.worker.stored(memory).item
    assert {category.name for category in (item or Item()).categories} == {"health", "money"}


async def test_unreachable_embedder_does_not_block_a_declaration(harness: CategoriesHarness) -> None:
    await harness.store_items(DENTIST)
    harness.worker.index.down()
    declared = await harness.command("declare_category", name="health", description=HEALTH)
    assert declared["name"] == "health"
    assert declared["size"] == 0
    harness.worker.index.up()
    assert set(await harness.agent.reassigned(SCOPE)) == {memory.memory_id for memory in await kept_of(harness)}


async def kept_of(harness: CategoriesHarness) -> list[Memory]:
    return list(harness.worker.memories.all())


async def test_reassignment_of_unchanged_items_is_empty(harness: CategoriesHarness) -> None:
    await harness.store_items(DENTIST, PILLS, RENT)
    await harness.command("declare_category", name="health", description=HEALTH)
    assert await harness.agent.reassigned(SCOPE) == {}


def test_assign_change_files_items_and_skips_missing_or_foreign_ones(harness: CategoriesHarness) -> None:
    mine = harness.put(made(DENTIST, 0, user="u1", origin="extracted", type="semantic", item=Item()))
    other = harness.put(made(DENTIST, 0, user="u1", project="p2", origin="extracted", type="semantic", item=Item()))
    turn = harness.put(made(DENTIST, 1, user="u1"))
    harness.table.declare("health", HEALTH, SCOPE, HERE)
    under = (CategoryAssignment(name="health", confidence=0.7),)
    assigned = dict.fromkeys((mine.memory_id, other.memory_id, turn.memory_id, "never there"), under)
    change = Change(scope=Scope(user_id="u1"), action="assign", assigned=assigned)
    stores = harness.worker.stores.at(HERE)
    assign = FileItems(stores.memories, stores.words, stores.categories, WriteMemory(stores.memories, stores.words))
    steps = list(assign.apply(change))
    assert [memory.memory_id for memory, _ in steps if memory] == [mine.memory_id]
    found = {memory.memory_id: memory.item.categories for memory in harness.worker.memories.all() if memory.item}
    assert found == {mine.memory_id: under, other.memory_id: ()}


async def test_unembeddable_category_does_not_block_vectors(harness: CategoriesHarness) -> None:
    harness.worker.embedders.model("general").rejected_word = "unspeakable"
    harness.table.declare("bad", "unspeakable", SCOPE, HERE)
    harness.table.declare("health", HEALTH, SCOPE, HERE)
    [memory] = await harness.store_items(DENTIST)
    assert memory.embedding.status == "ready"
    assert {category.name for category in (memory.item or Item()).categories} == {"health"}


async def test_vectors_wait_for_categories_during_an_embedder_outage(harness: CategoriesHarness) -> None:
    harness.table.declare("health", HEALTH, SCOPE, HERE)
    memory = harness.put(made(DENTIST, user="u1", origin="extracted", type="semantic", item=Item()))
    encoded = await harness.embed.encode(Remembered(memory=memory), HERE)
    harness.worker.embedders.model("general").outage = True
    with pytest.raises(Unavailable):
        await harness.embed.write([encoded])
    harness.worker.embedders.model("general").outage = False
    [report] = await harness.embed.write([encoded])
    assert {category.name for category in report.categories or ()} == {"health"}


async def test_refiling_again_mends_words_that_a_kill_left_outdated(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    [memory] = await harness.store_items(DENTIST)
    await harness.command("delete_category", name="health")
    assert harness.members.of(SCOPE, ["health"]) == {"health": []}
    # The record is written, its words were not committed.
    harness.worker.words.put(HERE, LexicalDocument(memory))
    change = Change(scope=Scope(user_id="u1"), action="refile", categories=("health",), result={})
    list(harness.worker.remember.changed(change))
    assert harness.members.of(SCOPE, ["health"]) == {"health": []}


async def test_items_left_of_a_forgotten_project_are_in_none_of_its_categories(harness: CategoriesHarness) -> None:
    await harness.command("declare_category", name="health", description=HEALTH)
    await harness.store_items(DENTIST)
    forget = Command(command="forget", scope=Scope(user_id="u1"), arguments={"project": True})
    harness.agent.before_forgetting(forget, 1)
    # Everything there was published after the command.
    change = Change(scope=forget.scope, action="forget", whole="project", turns_before=0, turns_until=100, result={})
    list(harness.worker.remember.changed(change))
    assert [memory.item.categories for memory in harness.worker.memories.all() if memory.item] == [()]
    assert harness.members.of(SCOPE, ["health"]) == {"health": []}
