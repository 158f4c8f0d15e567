"""The keeper of categories over fakes: who is a member, what sums them up, and what happens while others write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import categorize
from agents.assign import Assign
from agents.categorize import Categorize
from agents.category_best import BestMembers
from agents.category_fits import CategoryFits
from agents.category_members import CategoryMembers
from agents.embed import Embed
from agents.refresh_categories import RefreshCategories, SummaryModel
from agents.rules.category_taxonomy import MOST_DECLARED
from agents.rules.prompting import Template
from agents.run import Unbounded
from schemas.categories import Category
from schemas.changes import Change
from schemas.commands import Command
from schemas.events import Embedded, Remembered
from schemas.failures import Rejected, Unavailable
from schemas.language import Prompt
from schemas.memories import Assigned, Item, Memory, Origin
from schemas.scopes import Scope
from streams.adapters.language.prompt_files import read_prompt
from streams.parts import CATEGORY_PROMPT
from tests.fake_categories import FakeCategories
from tests.made_memories import made
from tests.one_worker import HERE, OneWorker

SCOPE = {"user_id": "u1", "project_id": "default"}
DENTIST, PILLS, RENT = "The dentist appointment is on Tuesday.", "Allergic to penicillin.", "The rent is 900 euros."
HEALTH = "dentist appointment, allergic penicillin"


class Keeping:
    """The keeper with a worker around it. What is told goes the way of items."""

    def __init__(self, directory: Path, *, asks: bool = False) -> None:
        self.worker = OneWorker(directory)
        self.table = FakeCategories()
        worker, index, spaces = self.worker, self.worker.index, self.worker.spaces
        self.members = CategoryMembers(worker.words)
        self.fits = CategoryFits(self.table, worker.memories, self.members, index, spaces)
        self.embed = Embed(spaces, index, worker.clock, self.fits)
        template = Template(read_prompt(CATEGORY_PROMPT), CATEGORY_PROMPT)
        best = BestMembers(worker.memories, index, spaces)
        model = SummaryModel(worker.language, template) if asks else None
        self.refreshing = RefreshCategories(self.table, worker.memories, self.members, best, model)
        self.keeper = Categorize(self.table, worker.memories, self.members, self.fits, self.refreshing)

    def put(self, memory: Memory) -> Memory:
        """Write a record and its words."""
        self.worker.words.put(HERE, memory)
        self.worker.memories.put(HERE, memory)
        return memory

    async def told(self, *texts: str, origin: Origin = "extracted", **fields: Any) -> list[Memory]:
        """Items with their vectors, under what they fit."""
        number = len(list(self.worker.memories.all()))
        kind = "episodic" if origin == "said" else "semantic"
        item = None if origin == "said" else Item()
        known: dict[str, Any] = {"user": "u1", "origin": origin, "type": kind, "item": item}
        some = [
            self.put(made(text, number + place, content_hash=text, **(known | fields)))
            for place, text in enumerate(texts)
        ]
        for memory in some:
            await self.embedded(memory)
        return [self.worker.kept(memory) for memory in some]

    async def embedded(self, memory: Memory) -> Embedded:
        """Embed a memory, and tell the keeper of memories."""
        [said] = await self.embed.write([await self.embed.encode(Remembered(memory=memory), HERE)])
        self.worker.remember.embedded(said, HERE)
        return said

    async def command(self, what: str, scope: Scope | None = None, **arguments: Any) -> dict[str, Any]:
        """What a command is answered with, once what it changes is carried out."""
        command = Command(command=what, scope=scope or Scope(user_id="u1"), arguments=arguments)
        governed = await self.keeper.commands[what](command, HERE, 0)
        if governed.change is not None:
            list(self.worker.remember.changed(governed.change, HERE))
        return governed.result

    async def names(self, name: str = "health") -> set[str]:
        """The texts of a category's members."""
        items = (await self.command("get_category", name=name))["items"]
        return {item["text"] for item in items}


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
    for number in range(MOST_DECLARED):
        keeping.table.declare(f"c{number}", "", SCOPE, HERE)
    with pytest.raises(Rejected, match="at most 256") as refused:
        await keeping.command("declare_category", name="one more")
    assert (refused.value.code, refused.value.field) == ("invalid_value", "arguments.name")
    assert (await keeping.command("declare_category", name="c0", description=HEALTH))["version"] == 2


async def test_what_one_declaration_does_not_take_is_put_there_by_the_next_look(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categorize, "MOST_ASSIGNED", 1)
    await keeping.told(DENTIST, PILLS)
    declared = await keeping.command("declare_category", name="health", description=HEALTH)
    assert (declared["size"], len(await keeping.names())) == (1, 1)
    assert len(await keeping.keeper.reassigned(HERE, SCOPE)) == 1


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
    keeping.worker.remember.embedded(said, HERE)
    item = keeping.worker.kept(memory).item
    assert {one.name for one in (item or Item()).categories} == {"health", "money"}


async def test_an_embedder_that_cant_be_reached_keeps_no_category_from_being_declared(keeping: Keeping) -> None:
    await keeping.told(DENTIST)
    keeping.worker.index.down()
    declared = await keeping.command("declare_category", name="health", description=HEALTH)
    assert (declared["name"], declared["size"]) == ("health", 0)
    keeping.worker.index.up()
    assert set(await keeping.keeper.reassigned(HERE, SCOPE)) == {memory.memory_id for memory in await kept_of(keeping)}


async def kept_of(keeping: Keeping) -> list[Memory]:
    return list(keeping.worker.memories.all())


async def test_what_is_looked_at_again_is_what_has_changed_and_nothing_else(keeping: Keeping) -> None:
    await keeping.told(DENTIST, PILLS, RENT)
    await keeping.command("declare_category", name="health", description=HEALTH)
    assert await keeping.keeper.reassigned(HERE, SCOPE) == {}


async def test_without_the_vector_index_the_newest_stand_for_a_category(keeping: Keeping) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST, PILLS)
    keeping.worker.index.down()
    shown = await keeping.command("get_category", name="health")
    assert shown["summary"] == f"{PILLS}\n{DENTIST}"


async def test_a_summary_is_not_written_over_what_was_forgotten_meanwhile(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    [dentist, pills] = await keeping.told(DENTIST, PILLS)
    ask = keeping.worker.index.vectors

    async def forgotten_meanwhile(*asked: Any) -> Any:
        found = await ask(*asked)
        keeping.worker.words.remove(HERE, pills.memory_id)
        keeping.worker.memories.forget(HERE, pills.memory_id)
        return found

    monkeypatch.setattr(keeping.worker.index, "vectors", forgotten_meanwhile)
    await keeping.refreshing.refresh(HERE, SCOPE)
    category = keeping.table.get(HERE, SCOPE).find("health") or Category(name="")
    assert (category.summary, category.anchors) == (DENTIST, (dentist.memory_id,))


async def test_a_category_described_anew_while_it_is_summed_up_keeps_the_new_description(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST, PILLS)
    ask = keeping.worker.index.vectors

    async def described_meanwhile(*asked: Any) -> Any:
        keeping.table.declare("health", "anew", SCOPE, HERE)
        keeping.table.declare("other", "fresh", SCOPE, HERE)
        return await ask(*asked)

    monkeypatch.setattr(keeping.worker.index, "vectors", described_meanwhile)
    await keeping.refreshing.refresh(HERE, SCOPE)
    taxonomy = keeping.table.get(HERE, SCOPE)
    assert {one.name: one.description for one in taxonomy.all()} == {"health": "anew", "other": "fresh"}
    assert (taxonomy.categories["health"].summary or "").split("\n") == [PILLS, DENTIST]


def summing_up(text: str) -> Callable[[Prompt], dict[str, Any]]:
    return lambda _: {"summary": text}


async def test_a_language_model_sums_up_where_it_is_asked_to_and_is_not_asked_twice(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path, asks=True)
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST, PILLS)
    keeping.worker.language.answers = summing_up("Teeth\n and pills.")
    assert set((await keeping.command("get_category", name="health"))["summary"].split("\n")) == {DENTIST, PILLS}
    assert keeping.worker.language.asked == [], "who reads waits for no model"
    [changed] = await keeping.keeper.refresh(HERE, SCOPE)
    assert (changed.summary, changed.profile, changed.version) == ("Teeth and pills.", "default", 3)
    assert await keeping.keeper.refresh(HERE, SCOPE) == []
    [prompt] = keeping.worker.language.asked
    assert DENTIST in prompt.user
    assert DENTIST not in prompt.system
    assert HEALTH in prompt.user


@pytest.mark.parametrize("behaviour", ["down", "wrong", "empty"])
async def test_a_model_that_gives_no_summary_leaves_that_of_the_rules(tmp_path: Path, behaviour: Any) -> None:
    keeping = Keeping(tmp_path, asks=True)
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST)
    if behaviour == "empty":
        keeping.worker.language.answers = summing_up(" ")
    else:
        keeping.worker.language.become(behaviour)
    [changed] = await keeping.keeper.refresh(HERE, SCOPE)
    assert (changed.summary, changed.profile) == (DENTIST, None)


class Purse(Unbounded):
    """An allowance of so many tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def may_spend(self, tokens: int) -> bool:
        return tokens <= self.tokens

    def spend(self, tokens: int) -> None:
        self.tokens -= tokens


@pytest.mark.parametrize(("tokens", "left", "summary"), [(9, 9, DENTIST), (5000, 4998, "Teeth.")])
async def test_a_summary_is_paid_from_the_allowance_and_made_of_own_words_without(
    tmp_path: Path, tokens: int, left: int, summary: str
) -> None:
    keeping, purse = Keeping(tmp_path, asks=True), Purse(tokens)
    await keeping.command("declare_category", name="health", description=HEALTH)
    await keeping.told(DENTIST)
    keeping.worker.language.answers = summing_up("Teeth.")
    [changed] = await keeping.keeper.refresh(HERE, SCOPE, allowance=purse)
    assert (changed.summary, purse.tokens) == (summary, left)


async def test_a_models_summary_is_gone_with_anything_that_it_was_told(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path, asks=True)
    await keeping.command("declare_category", name="health", description=HEALTH)
    [_, pills] = await keeping.told(DENTIST, PILLS)
    keeping.worker.language.answers = summing_up("Teeth and pills.")
    await keeping.keeper.refresh(HERE, SCOPE)
    keeping.worker.words.remove(HERE, pills.memory_id)
    keeping.worker.memories.forget(HERE, pills.memory_id)
    shown = await keeping.command("get_category", name="health")
    assert (shown["summary"], shown["size"]) == (DENTIST, 1)


def test_a_change_puts_items_under_categories_and_leaves_what_is_gone_or_elsewhere(keeping: Keeping) -> None:
    mine = keeping.put(made(DENTIST, 0, user="u1", origin="extracted", type="semantic", item=Item()))
    other = keeping.put(made(DENTIST, 0, user="u1", project="p2", origin="extracted", type="semantic", item=Item()))
    turn = keeping.put(made(DENTIST, 1, user="u1"))
    under = (Assigned(name="health", confidence=0.7),)
    assigned = dict.fromkeys((mine.memory_id, other.memory_id, turn.memory_id, "never there"), under)
    change = Change(scope=Scope(user_id="u1"), action="assign", assigned=assigned)
    steps = list(Assign(keeping.worker.memories, keeping.worker.words).carried_out(change, HERE))
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


@pytest.mark.parametrize(("arguments", "left"), [({"project": True}, {"p2"}), ({"user": True}, set[str]())])
async def test_before_a_whole_project_or_user_is_forgotten_no_summary_is_left_there(
    keeping: Keeping, arguments: dict[str, bool], left: set[str]
) -> None:
    for project in ("default", "p2"):
        await keeping.command("declare_category", Scope(user_id="u1", project_id=project), name="x", description=HEALTH)
        await keeping.told(DENTIST, project=project)
        await keeping.keeper.refresh(HERE, SCOPE | {"project_id": project})
    command = Command(command="forget", scope=Scope(user_id="u1"), arguments=arguments)
    keeping.keeper.before_forgetting(command, HERE, 0)
    taxonomies = {project: keeping.table.get(HERE, SCOPE | {"project_id": project}) for project in ("default", "p2")}
    assert {project for project, one in taxonomies.items() if DENTIST in one.model_dump_json()} == left
    assert {one.categories["x"].description for one in taxonomies.values()} == {HEALTH}


async def test_what_is_gone_since_the_last_refresh_is_not_shown(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keeping.command("declare_category", name="health", description=HEALTH)
    [_, pills] = await keeping.told(DENTIST, PILLS)
    await keeping.keeper.refresh(HERE, SCOPE)

    async def gone_after_it(*_: Any) -> list[Category]:
        keeping.worker.words.remove(HERE, pills.memory_id)
        keeping.worker.memories.forget(HERE, pills.memory_id)
        return []

    monkeypatch.setattr(keeping.refreshing, "refresh", gone_after_it)
    shown = await keeping.command("get_category", name="health")
    listed = await keeping.command("list_categories", include_summary=True)
    assert shown["summary"] == listed["categories"][0]["summary"] == DENTIST
    assert [anchor["text"] for anchor in shown["anchors"]] == [DENTIST]
