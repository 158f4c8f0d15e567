"""Formats of pages, by their own examples, and what they escape."""

import doctest

from gateway.pages import charts, formats
from gateway.pages.pages import notice_of


def test_examples_hold() -> None:
    for module in (charts, formats):
        assert doctest.testmod(module).failed == 0


def test_a_time_is_escaped() -> None:
    assert "<b>" not in formats.moment("<b>2026")


def test_only_own_notices_are_shown() -> None:
    assert notice_of({"notice": "moved", "count": "3", "name": "code"}) == "Memories moved to the mode code: 3."
    assert notice_of({"notice": "anything"}) is None
    assert notice_of({"notice": "moved", "count": "<b>"}) == "Memories moved to the mode : 0."
