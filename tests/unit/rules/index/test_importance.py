"""How much a memory matters before anybody asks."""

import pytest

from agents.rules.index.importance import estimate_importance, is_question


def test_what_the_writer_said_stands() -> None:
    assert estimate_importance(0.0, "a long telling sentence", 40) == 0.0
    assert estimate_importance(1.0, "Why?", 1) == 1.0


def test_a_question_matters_less_than_a_statement() -> None:
    assert estimate_importance(None, "We moved the violin lesson?", 5) < estimate_importance(
        None, "We moved the violin lesson.", 5
    )


def test_a_longer_text_matters_more_up_to_a_point() -> None:
    assert (
        estimate_importance(None, "yes", 1)
        < estimate_importance(None, "yes", 12)
        < estimate_importance(None, "yes", 40)
    )
    assert estimate_importance(None, "yes", 40) == estimate_importance(None, "yes", 4000) == 0.5


@pytest.mark.parametrize("text", ["Really?", 'She said "really?"', "去哪里\uff1f", "Where? \n", "(ok?)"])
def test_a_question_is_known_by_its_end(text: str) -> None:
    assert is_question(text)
    assert not is_question(text + " Yes.")
