"""A topic that is gone for a minute ends the worker; a broker that does not answer proves nothing."""

from streams.adapters.kafka.topic_maintenance import MISSING_TIMEOUT_S, MissingTopics


class Watch:
    def __init__(self, *topics: str) -> None:
        self.seconds = 0.0
        self.missing = MissingTopics(topics, lambda: self.seconds)

    def after(self, seconds: float, *existing: str) -> list[str]:
        self.seconds += seconds
        return self.missing.note(existing)


def test_topic_that_stays_away_is_named() -> None:
    watch = Watch("turns", "remembered")
    assert watch.after(0, "turns") == []
    assert watch.after(MISSING_TIMEOUT_S - 1, "turns", "other") == []
    assert watch.after(1, "turns") == ["remembered"]


def test_topic_that_returns_counts_anew() -> None:
    watch = Watch("turns")
    watch.after(0)
    assert watch.after(MISSING_TIMEOUT_S - 1, "turns") == []
    assert watch.after(1) == []


def test_outage_of_the_broker_counts_anew() -> None:
    watch = Watch("turns")
    watch.after(0)
    watch.missing.forget()
    assert watch.after(MISSING_TIMEOUT_S + 1) == []
