"""Repeated lines of libraries are written at intervals, with a count of those between."""

import logging

import pytest

from streams.observability.logs import MAX_KINDS, REPEAT_AFTER_S, RepeatedLines


class Written:
    """A logger through the filter, at a time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines = RepeatedLines(lambda: self.now)

    def log(self, message: str, *args: object, name: str = "aiokafka", level: int = logging.ERROR) -> str | None:
        """Return the line as it is written; None if it is left out."""
        record = logging.LogRecord(name, level, __file__, 1, message, args, None)
        return record.getMessage() if self.lines.filter(record) else None


@pytest.fixture
def written() -> Written:
    return Written()


def test_lines_of_one_kind_are_written_once_in_a_while_with_a_count(written: Written) -> None:
    assert written.log("no connection to %s", "1") == "no connection to 1"
    assert [written.log("no connection to %s", node) for node in ("1", "2", "3")] == [None] * 3
    written.now = REPEAT_AFTER_S
    assert written.log("no connection to %s", "2") == "no connection to 2 (3 more since the last such line)"
    written.now = 2 * REPEAT_AFTER_S
    assert written.log("no connection to %s", "1") == "no connection to 1"


def test_other_templates_levels_and_loggers_are_other_kinds(written: Written) -> None:
    assert written.log("away")
    assert written.log("back")
    assert written.log("away", level=logging.WARNING)
    assert written.log("away", name="faust")
    assert written.log("away") is None


def test_the_kinds_that_are_remembered_are_bounded(written: Written) -> None:
    for number in range(MAX_KINDS + 1):
        assert written.log(f"offset {number}")
    assert written.log("offset 0"), "the oldest kind is forgotten"
    assert written.log(f"offset {MAX_KINDS}") is None
