"""What is counted, by name, once; and the numbers as Prometheus reads them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from streams.observability.usage import Usage

REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets of durations."""


class Meters:
    """One worker's counters. When one moves: see the help of each."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.usage = Usage(registry)
        self._work = 0.0
        self._settled = _counter(registry, "settled", "Records finished and acknowledged.")
        self._handled = _counter(registry, "handled", "Records handled and answered.", "topic")
        self._moved = _counter(registry, "moved", "Records in a wrong partition: mend their producers.", "topic")
        self._expired = _counter(registry, "expired", "Requests past their deadline: the worker is behind.", "topic")
        self._rejected = _counter(registry, "rejected", "Records refused, by error code.", "topic", "code")
        self._lost_replies = _counter(registry, "replies_given_up", "Replies whose topic or partition is missing.")
        self._retries = _counter(registry, "retries", "Waits for something unavailable.", "what")
        self._embedded = _counter(registry, "embedded", "Texts embedded, by outcome.", "status")
        self.lag = Gauge("modestream_lag", "Records not yet handled.", ["topic"], registry=registry)
        self.retrieve_seconds = Histogram(
            "modestream_retrieve_seconds",
            "Time to answer a retrieve request.",
            buckets=REQUEST_BUCKETS_S,
            registry=registry,
        )

    def handled(self, topic: str) -> None:
        """A record was handled."""
        self._handled.labels(topic).inc()

    def moved(self, topic: str) -> None:
        """A record was moved to its partition."""
        self._moved.labels(topic).inc()

    def expired(self, topic: str) -> None:
        """A record came after its deadline."""
        self._expired.labels(topic).inc()

    def rejected(self, topic: str, code: str) -> None:
        """A record was refused."""
        self._rejected.labels(topic, code).inc()

    def reply_given_up(self) -> None:
        """A reply could not be delivered."""
        self._lost_replies.inc()

    def waited_for(self, what: str) -> None:
        """Something was unavailable and is tried again."""
        self._retries.labels(what).inc()
        self._work += 1

    def embedded(self, status: str) -> None:
        """A text went through the embedder."""
        self._embedded.labels(status).inc()

    def settled(self, records: int) -> None:
        """Records were finished and acknowledged."""
        self._settled.inc(records)
        self._work += records

    def work_done(self) -> float:
        """A number that grows while anything is done, waiting for something unavailable included."""
        return self._work

    def exposition(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self.registry)


def _counter(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Counter:
    return Counter(f"modestream_{name}", help_text, labels, registry=registry)
