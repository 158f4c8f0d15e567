"""The worker's metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from streams.observability.usage import Usage

REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets of durations."""


class Meters:
    """One worker's metrics; the help text of each says what it means for an operator."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.usage = Usage(registry)
        self._work = 0.0
        self._settled = _counter(registry, "settled", "Records finished and acknowledged.")
        self._handled = _counter(registry, "handled", "Records handled and answered.", "topic")
        self._moved = _counter(registry, "moved", "Records in a wrong partition: fix their producers.", "topic")
        self._expired = _counter(registry, "expired", "Requests past their deadline: the worker is behind.", "topic")
        self._rejected = _counter(registry, "rejected", "Records rejected, by error code.", "topic", "code")
        self._lost_replies = _counter(registry, "replies_given_up", "Replies dropped: no such topic or partition.")
        self._retries = _counter(registry, "retries", "Retries of something unavailable.", "what")
        self._embedded = _counter(registry, "embedded", "Texts embedded, by outcome.", "status")
        self.lag = Gauge("modestream_lag", "Records not yet handled.", ["topic"], registry=registry)
        self.retrieve_seconds = Histogram(
            "modestream_retrieve_seconds",
            "Time to answer a retrieve request.",
            buckets=REQUEST_BUCKETS_S,
            registry=registry,
        )

    def handled(self, topic: str) -> None:
        """Count a handled record."""
        self._handled.labels(topic).inc()

    def moved(self, topic: str) -> None:
        """Count a record moved to its partition."""
        self._moved.labels(topic).inc()

    def expired(self, topic: str) -> None:
        """Count a record past its deadline."""
        self._expired.labels(topic).inc()

    def rejected(self, topic: str, code: str) -> None:
        """Count a rejected record."""
        self._rejected.labels(topic, code).inc()

    def reply_given_up(self) -> None:
        """Count a dropped reply."""
        self._lost_replies.inc()

    def waited_for(self, what: str) -> None:
        """Count a retry."""
        self._retries.labels(what).inc()
        self._work += 1

    def embedded(self, status: str) -> None:
        """Count an embedded text."""
        self._embedded.labels(status).inc()

    def settled(self, records: int) -> None:
        """Count acknowledged records."""
        self._settled.inc(records)
        self._work += records

    def work_done(self) -> float:
        """Return a number that grows with any work, retries included."""
        return self._work

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _counter(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Counter:
    return Counter(f"modestream_{name}", help_text, labels, registry=registry)
