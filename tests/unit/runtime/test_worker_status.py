"""Lag, partitions and recovery of a worker, read from a fake of the Faust app."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from streams.runtime.worker_status import WorkerStatus
from streams.topics import topics_with_prefix
from tests.worlds.wiring import wired_subscriptions

TOPICS = topics_with_prefix("memory.")
OTHER_TURNS = TP(TOPICS.turns, 1)
TURNS, REQUESTS, CHANGELOG = TP(TOPICS.turns, 2), TP(TOPICS.retrieve, 2), TP("memory.worker-modes-changelog", 2)


class FakeConsumer:
    def __init__(self, lag: dict[TP, int]) -> None:
        self._lag = lag

    def assignment(self) -> set[TP]:
        return set(self._lag)

    def lag(self, tp: TP) -> int:
        return self._lag[tp]


def status(consumer: FakeConsumer | None, **state: bool) -> WorkerStatus:
    known = {"started": True, "in_recovery": False, "rebalancing": False}
    app: Any = SimpleNamespace(consumer=consumer, **(known | state))
    return WorkerStatus(app, TOPICS)


def test_lag_is_summed_by_topic() -> None:
    lag = status(FakeConsumer({TURNS: 5, OTHER_TURNS: 1, REQUESTS: 3, CHANGELOG: 99})).lag()
    assert lag[TOPICS.turns] == 6
    assert lag[TOPICS.retrieve] == 3
    assert lag[TOPICS.jobs] == 0
    assert CHANGELOG.topic not in lag


def test_every_topic_that_a_worker_reads_has_a_lag(tmp_path: Path) -> None:
    read = {each.topic for each in wired_subscriptions(tmp_path)}
    assert set(status(FakeConsumer({})).lag()) == read


def test_partitions_are_those_of_the_turns_topic() -> None:
    assert status(FakeConsumer({TURNS: 0, TP(TOPICS.retrieve, 3): 0})).partitions() == {2}


def test_app_that_has_not_started_has_no_partitions_and_no_lag() -> None:
    worker = status(None, started=False)
    assert worker() == {"lag": {}, "partitions": [], "recovering": True}


def test_worker_recovers_until_tables_are_recovered() -> None:
    consumer = FakeConsumer({TURNS: 0})
    assert status(consumer, in_recovery=True).recovering()
    assert status(consumer, rebalancing=True).recovering()
    assert not status(consumer).recovering()


def test_details_are_shown_while_there_are_any() -> None:
    worker, copies = status(None, started=False), dict[str, int]()
    worker.details["copies"] = lambda: copies
    assert "copies" not in worker()
    copies["3"] = 7
    assert worker()["copies"] == {"3": 7}
