"""Files of the interaction modes' tables."""

import re
from typing import Any

import pytest

from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from tests.builders.taxonomies import changed

BUDGETS = "modes.TASK.budgets"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("version", "", "version: "),
        ("colour", "red", "colour: Extra inputs"),
        ("modes.TASK", None, "without a table: TASK"),
        ("modes.COOKING", {}, "modes.COOKING"),
        ("modes.TASK.drop", ["doubts"], "modes.TASK.drop: Value error, 'doubts' is not a kind; kinds are change, code"),
        ("modes.TASK.drop", [{}], "{} is not a kind"),
        ("modes.TASK.drop", 7, "7 is not a kind"),
        ("modes.TASK.drop", ["code", "done"], "both kept and dropped: done"),
        ("modes.TASK.drop_said_in", ["COOKING"], "modes.TASK.drop_said_in"),
        (f"{BUDGETS}.rules", -1, "modes.TASK.budgets.rules"),
        (f"{BUDGETS}.rules", None, "sections without a budget: rules"),
        (BUDGETS, dict.fromkeys(("rules", "task_state"), 0), "sections without a budget: capsules"),
        ("intents", {"Deploy": "TASK"}, "'Deploy': an intent has 1 to 60 lower-case characters"),
        ("intents", {"deploy": "COOKING"}, "intents.deploy"),
        ("sticky", {"blocking_error": 1}, "safety_requirement is needed"),
        ("sticky", {"safety_requirement": 1, "blocking_error": 1}, "the same priority"),
        ("sticky", {"safety_requirement": 1, "wish": 2}, "sticky.wish"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(path: str, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        ModeTaxonomy.loads(changed({path: value}))


def test_a_file_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="file: Invalid JSON"):
        ModeTaxonomy.loads("version: 2")


def test_a_mode_without_tokens_is_refused() -> None:
    sections = ("rules", "task_state", "recent_window", "retrieved_evidence", "relevant_decisions", "capsules")
    with pytest.raises(ValueError, match="at least one section needs tokens"):
        ModeTaxonomy.loads(changed({BUDGETS: dict.fromkeys(sections, 0)}))


def test_intents_are_those_of_the_file() -> None:
    taxonomy = ModeTaxonomy.loads(changed({"intents": {"deploy": "TASK"}}))
    assert taxonomy.mode_of(" Deploy ") == "TASK"
    assert taxonomy.mode_of("explain") == "GENERAL"
