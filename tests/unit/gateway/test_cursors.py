"""Cursors of the gateway's lists: the same text in each release, and a refusal for any other."""

import base64

import pytest

from gateway.service.calls import Refused
from gateway.service.users import cursor_of, position_of


def test_cursor_stays_the_same_text() -> None:
    assert cursor_of("zoë", "prefix") == "WyJ6b8OrIiwgImNmZjZjNThiMWU4OSJd"


@pytest.mark.parametrize("text", ["[" * 100_000, "[1, 2]", '["\\ud800", ""]', "[NaN, 1]", "{}"])
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        position_of(base64.urlsafe_b64encode(text.encode()).decode(), "prefix")
