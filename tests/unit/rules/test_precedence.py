"""Which mode a turn gets."""

import pytest

from agents.rules.precedence import decided_mode
from schemas.failures import Rejected


def test_the_callers_mode_wins() -> None:
    assert decided_mode("code", ("general", "code")) == ("code", "caller")


def test_without_one_it_is_general() -> None:
    assert decided_mode(None, ("general", "code")) == ("general", "fallback")


@pytest.mark.parametrize("asked", ["", "General", "code", "general ", "*", "x" * 10_000])
def test_a_mode_that_nobody_declared_is_refused_and_never_becomes_another(asked: str) -> None:
    with pytest.raises(Rejected) as refused:
        decided_mode(asked, ("general",))
    assert (refused.value.code, refused.value.field) == ("unknown_mode", "mode")
    assert len(refused.value.message) < 200
