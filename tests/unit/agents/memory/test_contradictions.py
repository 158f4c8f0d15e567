"""Statements that contradict, in every language that rules read: the later one supersedes, and nothing else does."""

import json
from pathlib import Path
from typing import Any

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.items import ItemsHarness

DATA = Path(__file__).parents[3] / "data" / "contradictions"
LANGUAGES = sorted(path.stem for path in DATA.glob("*.json"))


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ItemsHarness:
    return ItemsHarness(words)


def read_cases(name: str) -> list[Any]:
    """Return the cases of all languages; a case is a list of two texts, or an object with the later one's sender."""
    cases = []
    for language in LANGUAGES:
        for case in json.loads((DATA / f"{language}.json").read_text())[name]:
            earlier, later = (case["earlier"], case["later"]) if isinstance(case, dict) else case
            sender = {key: case[key] for key in ("speaker", "project") if key in case} if isinstance(case, dict) else {}
            cases.append(pytest.param(earlier, later, sender, id=f"{language}: {earlier} / {later} {sender or ''}"))
    return cases


def superseded(harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]) -> list[bool]:
    """Say both; return for each item of the earlier text whether it is superseded."""
    scope = {"user_id": "u1", "project_id": sender.get("project", "p1")}
    first = harness.say(earlier, 1, speaker="Ana Kraus")
    harness.say(later, 2, speaker=sender.get("speaker", "Ana Kraus"), scope=scope)
    return [harness.get(memory_id).superseded_by is not None for memory_id in harness.get(first.memory_id).items]


@pytest.mark.parametrize(("earlier", "later", "sender"), read_cases("pairs"))
def test_plain_contradiction_supersedes(
    harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]
) -> None:
    assert superseded(harness, earlier, later, sender) == [True]


@pytest.mark.parametrize(("earlier", "later", "sender"), read_cases("look_alikes"))
def test_statements_that_only_look_alike_supersede_nothing(
    harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]
) -> None:
    assert True not in superseded(harness, earlier, later, sender)


@pytest.mark.parametrize(("later", "earlier", "sender"), read_cases("look_alikes"))
def test_statements_that_only_look_alike_supersede_nothing_the_other_way_round(
    harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]
) -> None:
    assert True not in superseded(harness, earlier, later, sender)


@pytest.mark.parametrize(("earlier", "later", "sender"), read_cases("held_out"))
def test_other_wordings_and_values_supersede(
    harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]
) -> None:
    assert superseded(harness, earlier, later, sender) == [True]


@pytest.mark.parametrize(("earlier", "later", "sender"), read_cases("held_out_look_alikes"))
def test_other_look_alikes_supersede_nothing(
    harness: ItemsHarness, earlier: str, later: str, sender: dict[str, str]
) -> None:
    assert True not in superseded(harness, earlier, later, sender)


def test_turn_of_a_superseded_item_is_current(harness: ItemsHarness) -> None:
    turn = harness.say("I live in Lisbon.", 1)
    harness.say("I live in Porto.", 2)
    assert harness.get(turn.memory_id).superseded_by is None


ROME, PARIS = "Tom lives in Rome.", "Tom lives in Paris."


def test_assistant_supersedes_nothing_that_a_user_said(harness: ItemsHarness) -> None:
    harness.say(ROME, 1)
    harness.say(PARIS, 2, role="assistant")
    assert harness.items()[ROME].superseded_by is None


def test_user_supersedes_what_an_assistant_said(harness: ItemsHarness) -> None:
    harness.say(PARIS, 1, role="assistant")
    harness.say(ROME, 2)
    assert harness.items()[PARIS].superseded_by == harness.items()[ROME].memory_id


def test_user_supersedes_the_user_across_what_an_assistant_said(harness: ItemsHarness) -> None:
    harness.say(ROME, 1)
    harness.say("Tom lives in Oslo.", 2, role="assistant")
    harness.say(PARIS, 3)
    assert harness.items()[ROME].superseded_by == harness.items()[PARIS].memory_id


def test_assistant_that_repeats_a_superseded_statement_does_not_give_it_back(harness: ItemsHarness) -> None:
    harness.say(ROME, 1)
    harness.say(PARIS, 2)
    harness.say(ROME, 3, role="assistant")
    assert harness.items()[ROME].superseded_by == harness.items()[PARIS].memory_id


def test_assistant_that_repeats_a_statement_does_not_take_its_weight(harness: ItemsHarness) -> None:
    harness.say(PARIS, 2)
    harness.say(PARIS, 3, role="assistant")
    harness.say(ROME, 1)
    assert harness.items()[ROME].superseded_by == harness.items()[PARIS].memory_id
