"""What resolves an entry of an intention, and what does not."""

import pytest

from agents.rules.intentions.extraction import MAX_SIGNALS_PER_TURN
from agents.rules.intentions.transitions import apply_set_intention
from tests.builders.events import learned, learned_of
from tests.builders.intentions import GOAL, LATER, LOGIN, NOTHING, SHIPPED, after, texts
from tests.builders.items import item_of
from tests.builders.memories import START, made


def test_later_turn_resolves_a_goal() -> None:
    [goal] = after(GOAL, SHIPPED).goals
    assert goal.state == "done"
    assert goal.resolved_by == SHIPPED.memory_id


def test_signal_does_not_resolve_later_entries() -> None:
    early = learned("We shipped the beta.", 0)
    assert texts(after(GOAL, early), "goals") == ["We want to ship the beta in May."]


def test_turn_does_not_resolve_its_own_entries() -> None:
    turn = made("We want to ship the beta. The old one: we shipped the beta.", 1)
    goal = item_of(turn, text="We want to ship the beta.", kind="goal")
    assert texts(after(learned_of(turn, goal)), "goals") == ["We want to ship the beta."]


@pytest.mark.parametrize(
    ("error", "sign"),
    [
        ("The login fails with a 500.", "The login is fixed."),
        ("The build crashes on CI with exit code 2.", "Fixed it, the build is working again."),
        ("Der Export nach PDF schlägt fehl.", "Der Export ist jetzt behoben."),
        ("La exportación a PDF falla siempre.", "La exportación ya está arreglado."),
        ("L'export vers PDF échoue.", "L'export est résolu."),
    ],
)
def test_specific_report_resolves_an_error(error: str, sign: str) -> None:
    other = learned("The printer jams on every page.", 2, "error", conversation_id="c2")
    found = after(learned(error, 1, "error"), other, learned(sign, 3))
    assert texts(found, "blocking_errors") == ["The printer jams on every page."]


@pytest.mark.parametrize(
    "sign",
    [
        "The login button is fixed in the header now.",
        "Once the login is fixed we can go on.",
        "The login is still not fixed.",
        "Is the login fixed?",
        "The printer is fixed.",
    ],
)
def test_other_or_hopeful_report_keeps_an_error(sign: str) -> None:
    printer = learned("The printer jams on every page.", 2, "error")
    kept = after(learned("The login page fails with a 500 on staging.", 1, "error"), printer, learned(sign, 3))
    assert "The login page fails with a 500 on staging." in texts(kept, "blocking_errors")


def test_it_works_now_resolves_the_only_error() -> None:
    elsewhere = learned("The printer jams on every page.", 1, "error", conversation_id="c2")
    found = after(LOGIN, elsewhere, learned("Great, it works now.", 3))
    assert texts(found, "blocking_errors") == ["The printer jams on every page."]


def test_it_works_now_resolves_neither_of_two_errors() -> None:
    second = learned("The printer jams on every page.", 1, "error")
    found = after(LOGIN, second, learned("Great, it works now.", 3))
    assert len(texts(found, "blocking_errors")) == 2


def test_recurring_error_is_open_again() -> None:
    again = learned("The login fails with a 500.", 9, "error")
    found = after(LOGIN, learned("The login is fixed.", 3), again)
    assert [entry.state for entry in found.blocking_errors] == ["done", "open"]


@pytest.mark.parametrize("sign", ["We finished the shop import and its tests.", "The shop is finished."])
def test_partial_report_advances_a_goal(sign: str) -> None:
    goal = learned("We want to build a recommender for the shop in Rust.", 1, "goal")
    part = learned(sign, 2)
    [entry] = after(goal, part).goals
    assert entry.state == "open"
    assert entry.advanced_by == (part.memory_id,)


def test_model_can_resolve_an_entry() -> None:
    turn = made("Looks good to me.", 5)
    found = after(GOAL, LOGIN, learned_of(turn, resolved=["the login fails with a 500"]))
    assert texts(found, "blocking_errors") == []
    assert texts(found, "goals") == ["We want to ship the beta in May."]


@pytest.mark.parametrize(
    ("role", "state"), [("user", "done"), ("assistant", "done"), ("tool", "open"), ("system", "open")]
)
def test_model_resolves_only_by_turns_that_may_report(role: str, state: str) -> None:
    turn = made("See the page.", 5, role=role)
    assert after(LOGIN, learned_of(turn, resolved=["the login fails with a 500"])).blocking_errors[0].state == state


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_model_resolves_nothing_that_was_set(role: str) -> None:
    start = apply_set_intention(NOTHING, [("goals", ["ship the beta in May"])], START, 1)
    found = after(learned_of(made("See the page.", 5, role=role), resolved=["ship the beta in May"]), start=start)
    assert texts(found, "goals") == ["ship the beta in May"]


def test_model_reports_at_most_eight_resolutions_of_a_turn() -> None:
    reports = [f"engine{number} is fixed" for number in range(20)]
    assert len(after(learned_of(made("See the list.", 5), resolved=reports)).signs) == MAX_SIGNALS_PER_TURN


def test_tool_output_does_not_resolve_a_goal() -> None:
    assert after(GOAL, learned("We shipped the beta.", 3, role="tool")).goals[0].state == "open"


def test_set_entry_is_resolved_later_and_reopened_when_set_again() -> None:
    start = apply_set_intention(NOTHING, [("goals", ["ship the beta in May"])], START, 1)
    done = after(SHIPPED, start=start)
    assert texts(done, "goals") == []
    assert texts(apply_set_intention(done, [("goals", ["ship the beta in May"])], LATER, 2), "goals") == [
        "ship the beta in May"
    ]
