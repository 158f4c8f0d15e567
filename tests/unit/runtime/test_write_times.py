"""When a record was written at the earliest, from the ends of its log."""

import pytest

from streams.runtime.request_reader import MAX_ENDS, WriteTimes

DAY_MS = 86_400_000


class Log:
    """Responses with the end of a log, each looked at as it comes."""

    def __init__(self) -> None:
        self.times = WriteTimes()
        self.set_by_ms = 0
        """How far the time of day is ahead."""

    def came(self, end: int, steady_s: float, looked_s: float | None = None) -> None:
        now_ms = DAY_MS + self.set_by_ms + round((looked_s or steady_s) * 1000)
        response_ms = DAY_MS + self.set_by_ms + round(steady_s * 1000)
        self.times.note(end, response_ms, now_ms, looked_s or steady_s)


@pytest.fixture
def log() -> Log:
    return Log()


def test_record_is_younger_than_the_request_for_an_end_before_it(log: Log) -> None:
    for second, end in enumerate((7, 7, 7, 8)):
        log.came(end, float(second))
    # The last end without it came at 2, and was asked for at 1.
    assert log.times.written_after(7) == 1.0


def test_nothing_is_known_of_records_before_the_first_ends(log: Log) -> None:
    assert log.times.written_after(7) is None
    log.came(7, 0.0)
    log.came(7, 1.0)
    assert log.times.written_after(7) is None
    log.came(7, 2.0)
    assert log.times.written_after(6) is None
    assert log.times.written_after(7) == 1.0


def test_record_that_waited_in_the_log_is_as_old_as_that(log: Log) -> None:
    for second in range(10):
        log.came(7 if second < 3 else 20, float(second))
    assert log.times.written_after(7) == 1.0
    assert log.times.written_after(20) == 8.0


def test_response_from_before_a_stop_says_nothing_of_what_came_after_it(log: Log) -> None:
    log.came(7, 0.0)
    log.came(7, 1.0)
    # Its end was read at 1.5, and the process stood still until 60.
    log.came(7, 60.0)
    assert log.times.written_after(7) == 1.0


@pytest.mark.parametrize("set_by_ms", [3_700_000, -3_700_000])
def test_clock_that_is_set_between_a_response_and_its_look_makes_nothing_younger(log: Log, set_by_ms: int) -> None:
    log.came(7, 0.0)
    log.came(7, 1.0)
    log.times.note(7, DAY_MS + 1500, DAY_MS + set_by_ms + 2000, 2.0)
    log.set_by_ms = set_by_ms
    log.came(7, 3.0)
    # The response before the last one came after the look at 1, as far as is known.
    assert log.times.written_after(7) == 1.0


def test_look_without_a_response_changes_nothing(log: Log) -> None:
    log.came(7, 0.0)
    log.came(7, 1.0)
    log.came(7, 2.0)
    log.came(7, 2.0, looked_s=5.0)
    assert log.times.written_after(7) == 1.0


def test_ends_are_bounded(log: Log) -> None:
    for second in range(3 * MAX_ENDS):
        log.came(second, float(second))
    assert log.times.written_after(MAX_ENDS) is None
    assert log.times.written_after(3 * MAX_ENDS) == float(3 * MAX_ENDS - 2)
