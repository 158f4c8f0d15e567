"""The client keeps to Kafka's time where the own clock is wrong."""

import pytest
from modestream_client.kafka.connection import MAX_DIFFERENCE_MS, MAX_DISAGREEING, KafkaClock

HOUR_MS = 3_600_000


class Machine:
    """A clock that is set, and one that is not."""

    own_ms, steady_ms = 10_000_000.0, 500.0

    def pass_ms(self, passed: float) -> None:
        self.own_ms += passed
        self.steady_ms += passed


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> KafkaClock:
    return KafkaClock(lambda: machine.own_ms, lambda: machine.steady_ms)


def test_own_clock_counts_before_the_first_reply(clock: KafkaClock) -> None:
    assert clock.corrected_ms() is None
    assert clock.now_ms() == 10_000_000


@pytest.mark.parametrize("set_by_ms", [HOUR_MS, -HOUR_MS])
def test_clock_that_is_set_wrong_is_corrected_until_it_is_set_right(
    clock: KafkaClock, machine: Machine, set_by_ms: int
) -> None:
    clock.note(10_000_100)
    machine.own_ms += set_by_ms
    machine.pass_ms(7)
    assert clock.corrected_ms() == 10_000_107
    assert clock.now_ms() == 10_000_107
    machine.own_ms -= set_by_ms
    assert clock.corrected_ms() is None
    assert clock.now_ms() == 10_000_007


def test_usual_difference_is_left(clock: KafkaClock) -> None:
    clock.note(10_000_000 - MAX_DIFFERENCE_MS)
    assert clock.corrected_ms() is None


def test_greater_difference_is_corrected(clock: KafkaClock) -> None:
    clock.note(10_000_000 - MAX_DIFFERENCE_MS - 1)
    assert clock.corrected_ms() == 10_000_000 - MAX_DIFFERENCE_MS - 1


@pytest.mark.parametrize("replies", [100, MAX_DISAGREEING - 1])
def test_backlog_after_a_suspension_does_not_set_the_clock_back(
    clock: KafkaClock, machine: Machine, replies: int
) -> None:
    clock.note(10_000_000)
    machine.pass_ms(HOUR_MS)
    for number in range(replies):
        clock.note(10_000_000 + number, is_awaited=replies < MAX_DISAGREEING)
    assert clock.corrected_ms() is None


def test_own_replies_in_a_row_say_that_the_clock_of_kafka_was_set_back(clock: KafkaClock) -> None:
    clock.note(10_000_000 + HOUR_MS)
    for _ in range(MAX_DISAGREEING):
        assert clock.corrected_ms() == 10_000_000 + HOUR_MS
        clock.note(10_000_000)
    assert clock.corrected_ms() is None
