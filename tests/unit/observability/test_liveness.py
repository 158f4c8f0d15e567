"""Stall detection."""

from streams.observability.http_server import RECOVERY_TIMEOUT_S, STALL_TIMEOUT_S, StallDetector


class Worker:
    """The numbers and the clock of a worker."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.work = 0.0
        self.lag = 0
        self.liveness = StallDetector(lambda: self.work, lambda: self.lag, lambda: self.seconds)

    def after(self, seconds: float, *, recovering: bool = False) -> bool:
        """Advance the clock; return whether the worker is alive."""
        self.seconds += seconds
        return self.liveness.alive(recovering=recovering)


def test_idle_worker_is_alive() -> None:
    worker = Worker()
    assert all(worker.after(10 * STALL_TIMEOUT_S) for _ in range(5))


def test_worker_with_progress_is_alive_at_any_lag() -> None:
    worker = Worker()
    worker.lag = 1_000_000
    for _ in range(20):
        worker.work += 1
        assert worker.after(STALL_TIMEOUT_S - 1)


def test_lag_without_progress_is_a_stall_after_a_minute() -> None:
    worker = Worker()
    worker.work, worker.lag = 5, 1
    assert worker.after(0)
    assert worker.after(STALL_TIMEOUT_S - 1)
    assert not worker.after(1)
    worker.work += 1
    assert worker.after(0), "it moved again"


def test_stall_timeout_begins_with_the_lag() -> None:
    worker = Worker()
    worker.after(1000)
    worker.lag = 1
    assert worker.after(STALL_TIMEOUT_S - 1)
    assert not worker.after(1)


def test_recovery_has_a_longer_timeout() -> None:
    worker = Worker()
    worker.after(0)
    assert worker.after(RECOVERY_TIMEOUT_S - 1, recovering=True)
    assert not worker.after(1, recovering=True)


def test_recovery_does_not_extend_the_stall_timeout() -> None:
    worker = Worker()
    worker.lag = 1
    worker.after(0)
    assert worker.after(STALL_TIMEOUT_S + 1, recovering=True)
    assert not worker.after(0)
