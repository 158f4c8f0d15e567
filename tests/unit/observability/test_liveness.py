from streams.observability.http_server import RECOVERY_TIMEOUT_S, STALL_TIMEOUT_S, STUCK_TIMEOUT_S, StallDetector
from streams.observability.metrics import AWAY_AFTER_S, AWAY_WINDOW_S, Meters


class Worker:
    def __init__(self) -> None:
        self.seconds = 1000.0
        self.work = 0.0
        self.lag = 0
        self.positions = {("turns", 0): 7}
        self.meters = Meters(lambda: self.seconds)
        self.liveness = StallDetector(
            lambda: self.work, lambda: self.lag, lambda: self.positions, self.meters.is_away, lambda: self.seconds
        )

    def after(self, seconds: float, *, recovering: bool = False) -> bool:
        """Advance the clock; return whether the worker is alive."""
        self.seconds += seconds
        return self.liveness.alive(recovering=recovering)


def test_idle_worker_is_alive() -> None:
    worker = Worker()
    worker.positions.clear()
    assert all(worker.after(10 * STALL_TIMEOUT_S) for _ in range(5))


def test_worker_with_progress_is_alive_at_any_lag() -> None:
    worker = Worker()
    worker.lag = 1_000_000
    for _ in range(20):
        worker.work += 1
        worker.positions["turns", 0] += 1
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


def test_waiting_for_a_dependency_that_is_away_is_no_stall() -> None:
    worker = Worker()
    worker.lag = 1
    worker.after(0)
    for _ in range(100):
        worker.meters.waited_for("vector store")
        assert worker.after(5)
    worker.meters.answered("vector store")
    assert worker.after(STALL_TIMEOUT_S - AWAY_AFTER_S - 1)
    assert not worker.after(1), "it is back, and nothing moves"


def test_retries_of_one_record_while_others_are_written_are_no_work() -> None:
    worker = Worker()
    worker.lag = 1
    worker.after(0)
    alive = []
    for _ in range(13):
        worker.meters.waited_for("kafka")
        worker.meters.answered("kafka")
        worker.meters.waited_for("kafka")
        alive.append(worker.after(5))
    assert not alive[-1]


def test_event_that_holds_up_its_partition_is_a_stall_whatever_others_do() -> None:
    worker = Worker()
    worker.lag = 9
    worker.positions["turns", 1] = 0
    worker.after(0)
    alive = []
    for _ in range(round(STUCK_TIMEOUT_S / 5)):
        worker.work += 1
        worker.positions["turns", 1] += 1
        alive.append(worker.after(5))
    assert alive == [True] * (len(alive) - 1) + [False]


def test_dependency_is_away_until_it_answers_or_is_no_longer_asked() -> None:
    worker = Worker()
    assert not worker.meters.is_away()
    worker.meters.waited_for("storage")
    assert not worker.meters.is_away(), "not yet"
    worker.seconds += AWAY_AFTER_S + 1
    assert worker.meters.is_away()
    worker.meters.answered("storage")
    assert not worker.meters.is_away()
    worker.meters.waited_for("storage")
    worker.seconds += AWAY_AFTER_S + 1
    worker.meters.waited_for("storage")
    assert worker.meters.is_away()
    worker.seconds += AWAY_WINDOW_S + 1
    assert not worker.meters.is_away()
