"""Items that a language model compares with earlier ones: a server over HTTP answers, `Remember` applies."""

import json
from typing import Any

import pytest

from agents.memory.write_memory import finish
from agents.rules.prompts.prompting import CHARS_PER_TOKEN
from agents.understanding.interaction_reader import InteractionReader
from agents.understanding.understand import MAX_EARLIER_ITEMS, EarlierItems, Understand
from schemas.failures import Unavailable
from schemas.internal.events import Understood
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL_MODE, Mode, ModeDeclarations, Visibility
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.bootstrap.prompts import Prompts
from streams.flow.pipelines.in_force import shipped_pipelines
from tests.builders.taxonomies import SHIPPED
from tests.fakes.classifier import FixedClassifier
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.harnesses.items import HERE, ItemsHarness
from tests.harnesses.language_models import LanguageModelHarness

COOK, BAKE = "Our canteen on Main Street is run by Ottavia.", "Ottavia has left Main Street; Benno runs our canteen."
"""The later one contradicts the earlier one, in words that no rule compares."""

PLAN_A, PLAN_B = "The deploy target is fly.io.", "The deploy target is AWS."


class ComparingHarness(ItemsHarness):
    """`Remember` and `Understand` over the same stores, with a language model over HTTP."""

    def __init__(self, words: SqliteLexicalIndex, rig: LanguageModelHarness, template: str | None = None) -> None:
        super().__init__(words)
        self.server = rig.server
        prompts = Prompts()
        self.understanding = Understand(
            InteractionReader(lambda: FakeEmbedders().of(GENERAL_MODE), FixedClassifier("TASK", 0.9), SHIPPED),
            rig.models(),
            prompts.of("understand") if template is None else prompts.get(template),
            self.stores.modes,
            self.stores.words,
            self.stores.memories,
            FakeClock(),
            shipped_pipelines().current,
        )

    def near(self, turn: Memory) -> list[str]:
        earlier = EarlierItems(self.stores.words, self.stores.memories, self.stores.modes)
        return [item.text for item in earlier.near(turn)]

    async def read(self, turn: Memory, *replaces: str, kind: str = "fact", **fields: Any) -> Understood:
        """Have the model answer with one item, the whole turn, that replaces these; apply the answer."""
        item = {"kind": kind, "text": turn.text, "quote": turn.text, "confidence": 0.9, "replaces": replaces}
        self.server.texts.append(json.dumps({"items": [item], **fields}))
        event = await self.understanding.by_model(turn)
        finish(self.agent.understood(event))
        return event

    def shown(self) -> list[dict[str, str]]:
        text = self.server.questions[-1].messages[-1]
        shown: list[dict[str, str]] = json.loads(text.partition(" earlier\n")[2].partition("\n>>>")[0])
        return shown

    def is_superseded(self, text: str) -> bool:
        return self.items()[text].superseded_by is not None


@pytest.fixture
def harness(words: SqliteLexicalIndex, rig: LanguageModelHarness) -> ComparingHarness:
    return ComparingHarness(words, rig)


async def say_both(harness: ComparingHarness) -> Memory:
    """Have the model find one item in each of two turns; return the later turn, which it has not read."""
    await harness.read(harness.say(COOK, 1))
    return harness.say(BAKE, 2)


async def test_model_supersedes_an_earlier_item(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    assert harness.items()[COOK].superseded_by == harness.items()[BAKE].memory_id


async def test_model_is_shown_the_earlier_items_by_short_names(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later)
    assert harness.shown() == [{"id": "e1", "said_at": "2026-03-01T09:01:00+00:00", "text": COOK}]


async def test_comparison_costs_no_further_call(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    assert len(harness.server.questions) == 2


async def test_model_that_says_nothing_replaces_nothing(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later)
    assert not harness.is_superseded(COOK)


async def test_names_that_the_model_was_not_shown_are_dropped(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    earlier_id = harness.items()[COOK].memory_id
    event = await harness.read(later, "e2", earlier_id, "", "e1 ")
    assert event.found is not None
    assert event.found.items[0].replaces == ()


async def test_item_of_an_answer_in_another_mode_replaces_nothing(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    mode = Mode(name="diary", embedder="tiny32", embedding_dim=32)
    harness.modes.put(HERE, "u1", ModeDeclarations(modes=(mode,)))
    await harness.read(later, "e1", mode="diary")
    assert harness.items()[BAKE].mode == "diary"
    assert not harness.is_superseded(COOK)


async def test_item_of_another_project_is_not_near(harness: ComparingHarness) -> None:
    await harness.read(harness.say(COOK, 1, scope={"user_id": "u1", "project_id": "p2"}))
    assert harness.near(harness.say(BAKE, 2)) == []


async def test_private_item_is_not_shown(harness: ComparingHarness) -> None:
    await harness.read(harness.say(COOK, 1))
    item = harness.items()[COOK]
    harness.write(item.model_copy(update={"visibility": Visibility(private=True)}))
    assert harness.near(harness.say(BAKE, 2)) == []


async def test_first_person_of_another_speaker_is_not_near(harness: ComparingHarness) -> None:
    harness.say("I live in Lisbon.", 1, speaker="Ana")
    assert harness.near(harness.say("I live in Porto.", 2, speaker="Bob")) == []


async def test_later_items_are_not_near(harness: ComparingHarness) -> None:
    await harness.read(harness.say(COOK, 5))
    assert harness.near(harness.say(BAKE, 2)) == []


async def test_few_items_are_near(harness: ComparingHarness) -> None:
    for number in range(1, 3 * MAX_EARLIER_ITEMS):
        harness.say(f"The port of server {number} is {9000 + number}.", number)
    assert len(harness.near(harness.say("The port of server 3 is 8000.", 50))) == MAX_EARLIER_ITEMS


async def test_rule_is_never_replaced(harness: ComparingHarness) -> None:
    await harness.read(harness.say(COOK, 1), kind="constraint")
    assert harness.near(harness.say(BAKE, 2)) == []


async def test_tool_replaces_nothing(harness: ComparingHarness) -> None:
    await harness.read(harness.say(COOK, 1))
    await harness.read(harness.say(BAKE, 2, role="tool"), "e1")
    assert not harness.is_superseded(COOK)


async def test_forgotten_turn_gives_back_what_it_replaced(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    harness.change("forget", memory_id=later.memory_id)
    assert not harness.is_superseded(COOK)


async def test_item_said_again_is_current_again(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    await harness.read(harness.say(COOK, 3))
    assert not harness.is_superseded(COOK)


async def test_turn_that_is_understood_again_is_shown_what_it_replaced(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    assert harness.near(harness.get(later.memory_id)) == [COOK]


async def test_answer_that_is_delivered_again_changes_nothing(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    event = await harness.read(later, "e1")
    before = harness.state()
    finish(harness.agent.understood(event))
    assert harness.state() == before


async def test_rules_compare_while_the_model_is_away(harness: ComparingHarness) -> None:
    harness.server.become(500)
    harness.say(PLAN_A, 1)
    with pytest.raises(Unavailable):
        await harness.understanding.by_model(harness.say(PLAN_B, 2))
    assert harness.is_superseded(PLAN_A)


async def test_rules_compare_where_the_answer_is_garbage(harness: ComparingHarness) -> None:
    harness.server.become("garbage")
    harness.say(PLAN_A, 1)
    finish(harness.agent.understood(await harness.understanding.by_model(harness.say(PLAN_B, 2))))
    assert harness.is_superseded(PLAN_A)


async def test_template_without_a_place_for_earlier_items_shows_none(
    words: SqliteLexicalIndex, rig: LanguageModelHarness
) -> None:
    harness = ComparingHarness(words, rig, template="understand-1")
    later = await say_both(harness)
    event = await harness.read(later, "e1")
    assert event.found is not None
    assert event.found.items[0].replaces == ()


def declare(harness: ComparingHarness, *names: str) -> None:
    modes = tuple(Mode(name=name, embedder="tiny32", embedding_dim=32) for name in names)
    harness.modes.put(HERE, "u1", ModeDeclarations(modes=modes))


@pytest.mark.parametrize("first", [COOK, BAKE])
async def test_replaced_item_stays_superseded_in_another_mode(harness: ComparingHarness, first: str) -> None:
    declare(harness, "diary")
    later = await say_both(harness)
    await harness.read(later, "e1")
    turns = {memory.text: memory.memory_id for memory in harness.memories.all() if memory.origin == "said"}
    for text in sorted(turns, key=lambda text: text != first):
        harness.change("move", memory_id=turns[text], to="diary")
    assert harness.items()[COOK].superseded_by == harness.items()[BAKE].memory_id


@pytest.mark.parametrize("first", [COOK, BAKE])
async def test_replaced_item_stays_superseded_under_another_visibility(harness: ComparingHarness, first: str) -> None:
    later = await say_both(harness)
    await harness.read(later, "e1")
    turns = {memory.text: memory.memory_id for memory in harness.memories.all() if memory.origin == "said"}
    for text in sorted(turns, key=lambda text: text != first):
        harness.change("filter", memory_id=turns[text], private=True)
    assert harness.items()[COOK].superseded_by == harness.items()[BAKE].memory_id


async def test_items_of_the_mode_of_the_turn_come_first(harness: ComparingHarness) -> None:
    declare(harness, "diary")
    for number in range(1, 2 * MAX_EARLIER_ITEMS):
        harness.say(f"The port of server {number} is {9000 + number}.", number, mode="diary")
    harness.say("The port of the printer is 80.", 30)
    assert harness.near(harness.say("The port of server 3 is 8000.", 50))[0] == "The port of the printer is 80."


async def test_expected_tokens_leave_room_for_the_earlier_items(harness: ComparingHarness) -> None:
    later = await say_both(harness)
    await harness.read(later)
    prompt = harness.server.questions[-1]
    assert harness.understanding.expected_tokens(later) >= sum(map(len, prompt.messages)) // CHARS_PER_TOKEN


async def test_expected_tokens_read_no_earlier_item(harness: ComparingHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    later = await say_both(harness)
    monkeypatch.setattr(EarlierItems, "near", lambda *_: pytest.fail("searched"))
    assert harness.understanding.expected_tokens(later) > 0
