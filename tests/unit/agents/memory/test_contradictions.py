"""Statements that contradict, in every language that rules read: the later one supersedes, and nothing else does."""

import json
from pathlib import Path

import pytest

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.items import ItemsHarness

DATA = Path(__file__).parents[3] / "data" / "contradictions"
LANGUAGES = sorted(path.stem for path in DATA.glob("*.json"))


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ItemsHarness:
    return ItemsHarness(words)


Case = tuple[str, str, dict[str, str]]
"""Two texts, and the speaker and the project of the later one where they are others."""


def read_cases(language: str, *names: str) -> list[Case]:
    cases: list[Case] = []
    for name in names:
        for case in json.loads((DATA / f"{language}.json").read_text())[name]:
            earlier, later = (case["earlier"], case["later"]) if isinstance(case, dict) else case
            sender = {key: case[key] for key in ("speaker", "project") if key in case} if isinstance(case, dict) else {}
            cases.append((earlier, later, sender))
    return cases


def superseded(harness: ItemsHarness, user: str, earlier: str, later: str, sender: dict[str, str]) -> list[bool]:
    """Have a user say both; return for each item of the earlier text whether it is superseded."""
    scopes = [{"user_id": user, "project_id": project} for project in ("p1", sender.get("project", "p1"))]
    first = harness.say(earlier, 1, speaker="Ana Kraus", scope=scopes[0])
    harness.say(later, 2, speaker=sender.get("speaker", "Ana Kraus"), scope=scopes[1])
    return [harness.get(memory_id).superseded_by is not None for memory_id in harness.get(first.memory_id).items]


@pytest.mark.parametrize("language", LANGUAGES)
def test_contradictions_supersede(harness: ItemsHarness, language: str) -> None:
    cases = read_cases(language, "pairs", "held_out")
    wrong = [case for number, case in enumerate(cases) if superseded(harness, f"u{number}", *case) != [True]]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_that_only_look_alike_supersede_nothing(harness: ItemsHarness, language: str) -> None:
    cases = read_cases(language, "look_alikes", "held_out_look_alikes")
    wrong = [case for number, case in enumerate(cases) if True in superseded(harness, f"u{number}", *case)]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_that_only_look_alike_supersede_nothing_the_other_way_round(
    harness: ItemsHarness, language: str
) -> None:
    cases = [(later, earlier, sender) for earlier, later, sender in read_cases(language, "look_alikes")]
    wrong = [case for number, case in enumerate(cases) if True in superseded(harness, f"u{number}", *case)]
    assert wrong == []


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
