"""Query-independent importance of a memory."""

import pytest

from agents.rules.index.lexical_document import estimate_importance, is_question


def test_given_importance_wins() -> None:
    assert estimate_importance(0.0, "a long telling sentence", 40) == 0.0
    assert estimate_importance(1.0, "Why?", 1) == 1.0


def test_question_is_less_important_than_statement() -> None:
    assert estimate_importance(None, "We moved the violin lesson?", 5) < estimate_importance(
        None, "We moved the violin lesson.", 5
    )


def test_importance_grows_with_length_and_saturates() -> None:
    assert (
        estimate_importance(None, "yes", 1)
        < estimate_importance(None, "yes", 12)
        < estimate_importance(None, "yes", 40)
    )
    assert estimate_importance(None, "yes", 40) == estimate_importance(None, "yes", 4000) == 0.5


@pytest.mark.parametrize("text", ["Really?", 'She said "really?"', "去哪里\uff1f", "Where? \n", "(ok?)"])
def test_question_ends_with_a_question_mark(text: str) -> None:
    assert is_question(text)
    assert not is_question(text + " Yes.")
