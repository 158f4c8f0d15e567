"""`Intend`: intentions have evidence in existing memories and are stored once."""

import json
from typing import Any

import pytest

from agents.intentions.adjust import Intend
from agents.ports.commands import CommandHandler
from schemas.failures import Rejected
from schemas.internal.events import Learned
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.memories import CategoryAssignment, Item, Memory, TextVersion
from streams.flow.stores import at_partition
from tests.builders.events import forgotten, learned, learned_of
from tests.builders.items import item_of
from tests.builders.memories import START, made
from tests.fakes.clock import FakeClock
from tests.fakes.tables.intentions import FakeIntentions
from tests.fakes.tables.memories import FakeMemories

HERE = 2
SCOPE = {"user_id": "ana", "project_id": "default"}


class IntendHarness:
    def __init__(self) -> None:
        self.table = FakeIntentions()
        self.memories = FakeMemories()
        self.intend = self.at(HERE)
        self.offset = 0

    def at(self, partition: int) -> Intend:
        return Intend(at_partition(self.table, partition), at_partition(self.memories, partition), FakeClock())

    def learn(self, event: Learned) -> Learned:
        for memory in (event.memory, *event.items):
            if memory is not None:
                self.memories.put(HERE, memory)
        self.intend.learned(event)
        return event

    async def command(self, name: str, project: str = "default", user: str = "ana", **arguments: Any) -> dict[str, Any]:
        """Handle a command at the next offset."""
        self.offset += 1
        scope = Scope(user_id=user, project_id=project)
        command = Command(command=name, scope=scope, arguments=arguments)
        handler: CommandHandler = getattr(self.intend, name)
        return (await handler(command, self.offset)).result

    def forget(self, **whole: bool) -> None:
        self.offset += 1
        scope = Scope(user_id="ana")
        self.intend.before_forgetting(Command(command="forget", scope=scope, arguments=whole), self.offset)

    def goals(self) -> list[str]:
        return [entry.text for entry in self.intend.get(SCOPE).open_entries("goals")]


@pytest.fixture
def harness() -> IntendHarness:
    return IntendHarness()


def record_of(event: Learned) -> Memory:
    assert event.memory is not None
    return event.memory


async def test_intention_without_entries_is_empty(harness: IntendHarness) -> None:
    empty: dict[str, Any] = {"goals": [], "constraints": [], "blocking_errors": [], "decisions": []}
    assert await harness.command("get_intention") == {
        **empty,
        "resolved": [],
        "categories": [],
        "version": 0,
        "whole_user": {"goals": [], "constraints": []},
    }


async def test_extracted_and_set_entries_have_their_sources(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta in May.", 1, "goal"))
    shown = await harness.command("set_intention", goals=["learn to sail"], constraints=["no debts"])
    assert shown == await harness.command("get_intention")
    [stated, wish] = shown["goals"]
    assert stated["source"] == "said"
    assert stated["item_id"] == event.items[0].memory_id
    assert stated["state"] == "open"
    assert stated["evidence"] == [{"turn_id": "t-1", "start": 0, "end": 32, "memory_id": event.memory_id}]
    assert wish["text"] == "learn to sail"
    assert wish["source"] == "set"
    assert wish["evidence"] == []
    assert [constraint["text"] for constraint in shown["constraints"]] == ["no debts"]
    assert shown["version"] == 2


async def test_equal_statements_are_one_entry_with_both_as_evidence(harness: IntendHarness) -> None:
    turns = [made("We want to ship the beta.", number) for number in (1, 2)]
    item = item_of(*turns, text=turns[0].text, kind="goal")
    for turn in turns:
        harness.learn(learned_of(turn, item))
    [entry] = harness.intend.get(SCOPE).goals
    assert entry.memory_ids == tuple(turn.memory_id for turn in turns)


async def test_resolved_entries_are_separate_from_open_ones(harness: IntendHarness) -> None:
    harness.learn(learned("The login fails.", 1, "error"))
    sign = harness.learn(learned("The login is fixed.", 2))
    shown = await harness.command("get_intention")
    assert shown["blocking_errors"] == []
    [done] = shown["resolved"]
    assert done["text"] == "The login fails."
    assert done["of"] == "blocking_errors"
    assert done["resolved_by"] == sign.memory_id


def test_entries_go_with_their_forgotten_turn(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta.", 1, "goal"))
    sign = harness.learn(learned("The login is fixed.", 2))
    edited = harness.learn(learned("We want to learn sailing.", 3, "goal"))
    stays = harness.learn(learned("We want to buy a house.", 4, "goal"))
    for memory in (event, sign):
        harness.memories.forget(HERE, memory.memory_id)
    other = TextVersion(text_hash="other", first_seen=START)
    harness.memories.put(HERE, record_of(edited).model_copy(update={"versions": (other,)}))
    harness.intend.learned(Learned(memory_id="gone", scope=SCOPE))
    table = harness.table.get(HERE, SCOPE)
    assert [entry.memory_ids for entry in table.goals] == [(stays.memory_id,)]
    assert table.signs == ()
    harness.intend.learned(Learned(memory_id="gone", scope=SCOPE))
    assert harness.table.get(HERE, SCOPE) == table


async def test_forgotten_turn_is_hidden_before_its_event_arrives(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta.", 1, "goal"))
    harness.memories.forget(HERE, event.memory_id)
    assert "beta" not in json.dumps(await harness.command("get_intention"))


async def test_removed_and_superseded_items_are_not_shown(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta.", 1, "goal"))
    [item] = event.items
    harness.memories.put(HERE, item.model_copy(update={"superseded_by": "another"}))
    assert harness.goals() == []
    harness.memories.put(HERE, item)
    assert harness.goals() == [item.text]
    harness.memories.forget(HERE, item.memory_id)
    assert harness.goals() == []


async def test_replaced_text_is_not_shown(harness: IntendHarness) -> None:
    turn = record_of(harness.learn(learned("We want to ship the beta.", 1, "goal")))
    versions = (*turn.versions, TextVersion(text_hash="another", first_seen=START))
    harness.memories.put(HERE, turn.model_copy(update={"versions": versions, "current": 1}))
    assert harness.goals() == []


async def test_goal_reopens_without_its_resolving_turn(harness: IntendHarness) -> None:
    harness.learn(learned("We want to ship the beta.", 1, "goal"))
    sign = harness.learn(learned("We shipped the beta.", 2))
    assert harness.goals() == []
    harness.memories.forget(HERE, sign.memory_id)
    assert harness.goals() == ["We want to ship the beta."]


async def test_next_event_removes_entries_of_a_forgotten_turn(harness: IntendHarness) -> None:
    late = learned("We want to ship the beta.", 1, "goal")
    harness.memories.forget(HERE, late.memory_id)
    harness.intend.learned(late)
    assert "beta" not in harness.table.get(HERE, SCOPE).model_dump_json()


async def test_text_of_a_forgotten_turn_leaves_the_table(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta.", 1, "goal"))
    harness.memories.forget(HERE, event.memory_id)
    harness.intend.learned(forgotten(event))
    assert "beta" not in harness.table.get(HERE, SCOPE).model_dump_json()


async def test_event_that_changes_nothing_writes_nothing(harness: IntendHarness) -> None:
    event = harness.learn(learned("We want to ship the beta.", 1, "goal"))
    harness.learn(event)
    harness.learn(learned("The tram is green.", 2))
    assert harness.table.writes == 1


async def test_categories_are_those_that_the_items_have_now(harness: IntendHarness) -> None:
    [item] = harness.learn(learned("We want to ship the beta.", 1, "goal")).items
    assert harness.intend.get(SCOPE).categories == ()
    named = Item(kind="goal", categories=(CategoryAssignment(name="releases", confidence=0.8),))
    harness.memories.put(HERE, item.model_copy(update={"item": named}))
    assert (await harness.command("get_intention"))["categories"] == ["releases"]


async def test_setting_the_same_again_shows_the_same(harness: IntendHarness) -> None:
    wishes: dict[str, Any] = {"goals": ["learn to sail"], "constraints": ["no debts"]}
    first = await harness.command("set_intention", **wishes)
    assert await harness.command("set_intention", **wishes) == first


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"goals": "sail"}, "invalid_value"),
        ({"goals": [""]}, "invalid_value"),
        ({"constraints": [" "]}, "invalid_value"),
        ({"goals": ["x" * 513]}, "too_large"),
        ({"goals": ["x"] * 51}, "too_large"),
    ],
)
async def test_invalid_lists_are_rejected_without_a_change(
    harness: IntendHarness, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(Rejected) as refused:
        await harness.command("set_intention", **arguments)
    assert refused.value.code == code
    assert (refused.value.field or "").startswith("arguments.")
    assert harness.table.writes == 0


async def test_forgetting_a_project_removes_only_its_set_entries(harness: IntendHarness) -> None:
    for project in ("default", "p2"):
        await harness.command("set_intention", project, goals=[f"sail in {project}"])
    harness.forget(project=True)
    assert "sail" not in json.dumps(await harness.command("get_intention"))
    assert "sail in p2" in json.dumps(await harness.command("get_intention", "p2"))


async def test_forgetting_a_user_removes_only_their_intentions(harness: IntendHarness) -> None:
    for user, project in (("ana", "default"), ("ana", "p2"), ("anabel", "default")):
        await harness.command("set_intention", project, user, goals=["sail"])
    harness.forget(user=True)
    for project in ("default", "p2"):
        assert "sail" not in json.dumps(await harness.command("get_intention", project))
    assert "sail" in json.dumps(await harness.command("get_intention", "default", "anabel"))


async def test_redelivered_forget_keeps_entries_set_afterwards(harness: IntendHarness) -> None:
    harness.forget(user=True)
    await harness.command("set_intention", goals=["sail"])
    harness.offset = 0
    harness.forget(user=True)
    assert harness.goals() == ["sail"]


async def test_another_partition_sees_nothing(harness: IntendHarness) -> None:
    await harness.command("set_intention", goals=["sail"])
    assert harness.at(HERE + 1).get(SCOPE).goals == ()
