"""The keeper of categories: what is declared, who is a member, and what happens while others write."""

from pathlib import Path
from typing import Any

import pytest

from agents.categories import categorize
from agents.memory.file_items import FileItems
from agents.memory.write_memory import WriteMemory
from agents.rules.categories.taxonomy import MAX_CATEGORIES_PER_SCOPE
from schemas.changes import Change
from schemas.events import Remembered
from schemas.failures import Rejected, Unavailable
from schemas.memories import CategoryAssignment, Item, Memory
from schemas.scopes import Scope
from tests.builders.memories import made
from tests.harnesses.categories import DENTIST, HEALTH, PILLS, RENT, SCOPE, Keeping
from tests.harnesses.worker import HERE


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    return Keeping(tmp_path)


async def test_turns_are_members_of_nothing_and_what_was_distilled_from_them_is(keeping: Keeping) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST, origin="said")
    assert (await keeping.command("list_categories"))["uncategorised"] == 0
    await keeping.told(PILLS, origin="distilled")
    await keeping.told(RENT)
    assert await keeping.names() == {PILLS}
    assert (await keeping.command("list_categories"))["uncategorised"] == 1


async def test_what_is_superseded_is_neither_a_member_nor_uncategorised(keeping: Keeping) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    [pills, rent, _] = await keeping.told(PILLS, RENT, DENTIST)
    for memory in (pills, rent):
        keeping.put(memory.model_copy(update={"superseded_by": "another"}))
    listed = await keeping.command("list_categories")
    assert ([one["size"] for one in listed["categories"]], listed["uncategorised"]) == ([1], 0)


async def test_a_scope_without_categories_embeds_nothing_for_them(keeping: Keeping) -> None:
    await keeping.told(DENTIST)
    assert keeping.worker.embedders.model("general").passages == [DENTIST]


async def test_a_description_is_embedded_once_for_each_space(keeping: Keeping) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST)
    before = len(keeping.worker.embedders.model("general").passages)
    await keeping.told(PILLS, RENT)
    assert len(keeping.worker.embedders.model("general").passages) == before + 2


async def test_a_scope_has_a_bounded_number_of_categories_and_each_can_be_described_anew(keeping: Keeping) -> None:
    for number in range(MAX_CATEGORIES_PER_SCOPE):
        keeping.table.declare(f"c{number}", "", SCOPE, HERE)
    with pytest.raises(Rejected, match="at most 256") as refused:
        await keeping.command("declare_category", name="one more")
    assert (refused.value.code, refused.value.field) == ("invalid_value", "arguments.name")
    assert (await keeping.command("declare_category", name="c0", description=HEALTH))["version"] == 2


async def test_what_one_declaration_does_not_take_is_put_there_by_the_next_look(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categorize, "MAX_ASSIGNED_ITEMS", 1)
    await keeping.told(DENTIST, PILLS)
    declared = await keeping.command("declare_category", name="health", description=HEALTH)
    assert (declared["size"], len(await keeping.names())) == (1, 1)
    assert len(await keeping.keeper.reassigned(SCOPE)) == 1


async def test_each_mode_is_looked_at_in_its_own_space(keeping: Keeping) -> None:
    keeping.worker.declare("code", "tiny48")
    await keeping.told(DENTIST)
    await keeping.told(PILLS, mode="code")
    await keeping.command("declare_category", name="health", description=HEALTH)
    assert await keeping.names() == {DENTIST, PILLS}


async def test_a_category_declared_while_an_item_gets_its_vector_is_not_lost(keeping: Keeping) -> None:
    await keeping.command("declare_category", name="money", description="rent, euros")
    [memory] = [keeping.put(made(f"{DENTIST} {RENT}", user="u1", origin="extracted", type="semantic", item=Item()))]
    [said] = await keeping.embed.write([await keeping.embed.encode(Remembered(memory=memory), HERE)])
    assert {one.name for one in said.categories or ()} == {"money"}
    # The indexer's news come after the answer of the declaration.
    await keeping.command("declare_category", name="health", description="dentist appointment")
    keeping.worker.remember.embedded(said)
    item = keeping.worker.kept(memory).item
    assert {one.name for one in (item or Item()).categories} == {"health", "money"}


async def test_an_embedder_that_cant_be_reached_keeps_no_category_from_being_declared(keeping: Keeping) -> None:
    await keeping.told(DENTIST)
    keeping.worker.index.down()
    declared = await keeping.command("declare_category", name="health", description=HEALTH)
    assert (declared["name"], declared["size"]) == ("health", 0)
    keeping.worker.index.up()
    assert set(await keeping.keeper.reassigned(SCOPE)) == {memory.memory_id for memory in await kept_of(keeping)}


async def kept_of(keeping: Keeping) -> list[Memory]:
    return list(keeping.worker.memories.all())


async def test_what_is_looked_at_again_is_what_has_changed_and_nothing_else(keeping: Keeping) -> None:
    await keeping.told(DENTIST, PILLS, RENT)
    await keeping.command("declare_category", name="health", description=HEALTH)
    assert await keeping.keeper.reassigned(SCOPE) == {}


def test_a_change_puts_items_under_categories_and_leaves_what_is_gone_or_elsewhere(keeping: Keeping) -> None:
    mine = keeping.put(made(DENTIST, 0, user="u1", origin="extracted", type="semantic", item=Item()))
    other = keeping.put(made(DENTIST, 0, user="u1", project="p2", origin="extracted", type="semantic", item=Item()))
    turn = keeping.put(made(DENTIST, 1, user="u1"))
    under = (CategoryAssignment(name="health", confidence=0.7),)
    assigned = dict.fromkeys((mine.memory_id, other.memory_id, turn.memory_id, "never there"), under)
    change = Change(scope=Scope(user_id="u1"), action="assign", assigned=assigned)
    stores = keeping.worker.stores.at(HERE)
    assign = FileItems(stores.memories, WriteMemory(stores.memories, stores.words))
    steps = list(assign.apply(change))
    assert [memory.memory_id for memory, _ in steps if memory] == [mine.memory_id]
    found = {one.memory_id: one.item.categories for one in keeping.worker.memories.all() if one.item}
    assert found == {mine.memory_id: under, other.memory_id: ()}


async def test_a_category_whose_text_no_model_takes_keeps_no_vector_from_being_written(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = keeping.worker.embedders.model("general")
    take = model._states

    def picky(prefix: str, text: str) -> Any:
        if "unspeakable" in text:
            raise ValueError(text)
        return take(prefix, text)

    keeping.table.declare("bad", "unspeakable", SCOPE, HERE)
    keeping.table.declare("health", HEALTH, SCOPE, HERE)
    monkeypatch.setattr(model, "_states", picky)
    [memory] = await keeping.told(DENTIST)
    assert memory.embedding.status == "ready"
    assert {one.name for one in (memory.item or Item()).categories} == {"health"}


async def test_while_the_embedder_is_away_vectors_wait_and_are_not_written_without_their_categories(
    keeping: Keeping,
) -> None:
    keeping.table.declare("health", HEALTH, SCOPE, HERE)
    memory = keeping.put(made(DENTIST, user="u1", origin="extracted", type="semantic", item=Item()))
    encoded = await keeping.embed.encode(Remembered(memory=memory), HERE)
    keeping.worker.embedders.model("general").outage = True
    with pytest.raises(Unavailable):
        await keeping.embed.write([encoded])
    keeping.worker.embedders.model("general").outage = False
    [said] = await keeping.embed.write([encoded])
    assert {one.name for one in said.categories or ()} == {"health"}
