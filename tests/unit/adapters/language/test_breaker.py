import asyncio

import pytest

from streams.adapters.language.endpoint import BreakerLimits, CircuitBreaker

LIMITS = BreakerLimits(failures=5, timeouts=3, initial_open_s=1.0, max_open_s=4.0)


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def breaker(seconds: Seconds) -> CircuitBreaker:
    return CircuitBreaker(LIMITS, seconds, lambda: 0.0)


def fail(breaker: CircuitBreaker, times: int = 1, *, timed_out: bool = False) -> None:
    for _ in range(times):
        breaker.failed(entered(breaker), timed_out=timed_out)


def state(breaker: CircuitBreaker) -> str:
    """Read the state in a function: the type checker would narrow it."""
    return breaker.state


def entered(breaker: CircuitBreaker) -> int:
    entry = breaker.enter()
    assert entry is not None
    return entry


def test_five_failures_in_a_row_open_it_and_four_do_not(breaker: CircuitBreaker) -> None:
    fail(breaker, 4)
    assert state(breaker) == "closed"
    fail(breaker)
    assert state(breaker) == "open"
    assert breaker.enter() is None


def test_three_timeouts_in_a_row_open_it(breaker: CircuitBreaker) -> None:
    fail(breaker, 2, timed_out=True)
    assert state(breaker) == "closed"
    fail(breaker, timed_out=True)
    assert state(breaker) == "open"


def test_answer_resets_the_count_of_failures(breaker: CircuitBreaker) -> None:
    fail(breaker, 4)
    breaker.passed()
    fail(breaker, 4)
    assert state(breaker) == "closed"


def test_half_open_breaker_admits_exactly_one(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    seconds.now += 0.9
    assert state(breaker) == "open"
    seconds.now += 0.1
    assert state(breaker) == "half_open"
    entered(breaker)
    assert breaker.enter() is None


def test_answered_probe_closes_it(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    seconds.now += 1
    entered(breaker)
    breaker.passed()
    assert state(breaker) == "closed"
    fail(breaker, 4)
    assert state(breaker) == "closed"


def test_failed_probe_doubles_the_open_time_up_to_the_maximum(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    rests = []
    for _ in range(4):
        begun = seconds.now
        while state(breaker) == "open":
            seconds.now += 0.25
        rests.append(seconds.now - begun)
        fail(breaker)
    assert rests == [1.0, 2.0, 4.0, 4.0]


def test_open_time_is_short_again_after_a_recovery(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    seconds.now += 1
    fail(breaker)
    seconds.now += 2
    entered(breaker)
    breaker.passed()
    fail(breaker, 5)
    seconds.now += 1
    assert state(breaker) == "half_open"


def test_jitter_shortens_the_open_time_by_a_quarter_at_most(seconds: Seconds) -> None:
    breaker = CircuitBreaker(LIMITS, seconds, lambda: 1.0)
    fail(breaker, 5)
    seconds.now += 0.74
    assert state(breaker) == "open"
    seconds.now += 0.01
    assert state(breaker) == "half_open"


def test_late_failure_of_an_earlier_attempt_is_ignored(breaker: CircuitBreaker, seconds: Seconds) -> None:
    straggler = entered(breaker)
    fail(breaker, 5)
    breaker.failed(straggler)
    seconds.now += 1
    assert state(breaker) == "half_open"
    entered(breaker)
    breaker.failed(straggler)
    assert state(breaker) == "half_open"


def test_late_answer_of_an_earlier_attempt_closes_it(breaker: CircuitBreaker) -> None:
    entered(breaker)
    fail(breaker, 5)
    breaker.passed()
    assert state(breaker) == "closed"


def test_cancelled_probe_admits_the_next(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    seconds.now += 1
    breaker.left(entered(breaker))
    assert state(breaker) == "half_open"
    entered(breaker)


def test_retry_after_opens_it_at_once_and_is_bounded(breaker: CircuitBreaker, seconds: Seconds) -> None:
    breaker.failed(entered(breaker), retry_after_s=86_400)
    assert state(breaker) == "open"
    seconds.now += 119
    assert state(breaker) == "open"
    seconds.now += 1
    assert state(breaker) == "half_open"


async def test_waiters_continue_when_it_is_half_open() -> None:
    loop = asyncio.get_running_loop()
    breaker = CircuitBreaker(BreakerLimits(failures=1, initial_open_s=0.01), loop.time, lambda: 0.0)
    fail(breaker)
    await asyncio.wait_for(breaker.until_admits(), 5)
    assert breaker.admits


async def test_waiters_continue_when_the_probe_is_answered(breaker: CircuitBreaker, seconds: Seconds) -> None:
    fail(breaker, 5)
    seconds.now += 1
    entered(breaker)
    waiting = asyncio.create_task(breaker.until_admits())
    await asyncio.sleep(0)
    assert not waiting.done()
    breaker.passed()
    await asyncio.wait_for(waiting, 5)


async def test_waiters_keep_waiting_when_the_probe_fails() -> None:
    loop = asyncio.get_running_loop()
    breaker = CircuitBreaker(BreakerLimits(failures=1, initial_open_s=0.01), loop.time, lambda: 0.0)
    fail(breaker)
    await breaker.until_admits()
    probe = entered(breaker)
    waiting = asyncio.create_task(breaker.until_admits())
    await asyncio.sleep(0)
    breaker.failed(probe)
    assert not breaker.admits
    await asyncio.wait_for(waiting, 5)
    assert state(breaker) == "half_open"
