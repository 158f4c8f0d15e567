import pytest

from schemas.failures import Rejected, Unavailable
from streams import backoff
from streams.backoff import INITIAL_BACKOFF_S, MAX_BACKOFF_S, until_available
from streams.observability.metrics import Meters


class FakeSleep:
    """A replacement for `asyncio` whose sleeps return at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Flaky:
    """Fails a number of times, then returns."""

    def __init__(self, failures: int, problem: Exception) -> None:
        self.calls = 0
        self._failures = failures
        self._problem = problem

    async def __call__(self) -> str:
        """Fail or return."""
        self.calls += 1
        if self.calls <= self._failures:
            raise self._problem
        return "done"


@pytest.fixture
def sleep(monkeypatch: pytest.MonkeyPatch) -> FakeSleep:
    fake = FakeSleep()
    monkeypatch.setattr(backoff, "asyncio", fake)
    return fake


async def test_available_dependency_is_not_retried(sleep: FakeSleep) -> None:
    assert await until_available(Flaky(0, Unavailable()), "store", Meters()) == "done"
    assert sleep.seconds == []


async def test_pauses_double_up_to_a_limit_and_are_counted(sleep: FakeSleep) -> None:
    meters = Meters()
    assert await until_available(Flaky(8, Unavailable("away")), "store", meters) == "done"
    assert sleep.seconds[:3] == [INITIAL_BACKOFF_S, 2 * INITIAL_BACKOFF_S, 4 * INITIAL_BACKOFF_S]
    assert sleep.seconds[-2:] == [MAX_BACKOFF_S, MAX_BACKOFF_S]
    assert meters.registry.get_sample_value("modestream_retries_total", {"what": "store"}) == 7
    assert meters.work_done() == 0, "a retry is no work"


@pytest.mark.parametrize("problem", [ValueError("a defect"), Rejected("not_found", "no")])
async def test_anything_else_is_not_tried_again(sleep: FakeSleep, problem: Exception) -> None:
    flaky = Flaky(1, problem)
    with pytest.raises(type(problem)):
        await until_available(flaky, "store", Meters())
    assert flaky.calls == 1
    assert sleep.seconds == []


async def test_bounded_retry_raises_the_last_error(sleep: FakeSleep) -> None:
    flaky = Flaky(1000, Unavailable("away"))
    with pytest.raises(Unavailable, match="away"):
        await until_available(flaky, "store", Meters(), at_most_s=30)
    assert 30 <= sum(sleep.seconds) <= 30 + MAX_BACKOFF_S


async def test_retried_lambda_is_awaited(sleep: FakeSleep) -> None:
    flaky = Flaky(2, Unavailable("down"))
    assert await until_available(lambda: flaky(), "kafka", Meters()) == "done"  # noqa: PLW0108 - as steps call it
    assert len(sleep.seconds) == 1
