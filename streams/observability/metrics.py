"""The worker's metrics."""

import time
from collections import Counter as Counts
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from modestream_client.vocabulary import ModeSource, Strategy
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Usage:
    """Counts turns by the source of their mode, agreement of models, corrections by users, and search strategies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decided = Counter(
            "modestream_modes_decided", "Turns with a mode, by its source.", ["source"], registry=registry
        )
        self._answered = Counter(
            "modestream_model_modes", "Modes from models, by agreement with the default.", ["agrees"], registry=registry
        )
        self._corrected = Counter(
            "modestream_corrections", "Memories moved to another mode by command.", registry=registry
        )
        self._retrieved = Counter(
            "modestream_retrieved", "Retrieve requests answered, by strategy.", ["strategy"], registry=registry
        )
        self._counts: Counts[str] = Counts()

    def decided(self, source: ModeSource) -> None:
        """Count a turn by the source of its mode."""
        self._decided.labels(source).inc()
        self._counts["decided"] += 1

    def model_answered(self, *, agrees: bool) -> None:
        """Count a model's choice; `agrees`: it equals the mode that the turn would have had without the model."""
        self._answered.labels(str(agrees).lower()).inc()
        self._counts["answered"] += 1
        self._counts["agreed"] += agrees

    def corrected(self, memories: int = 1) -> None:
        """Count memories moved to another mode by command."""
        self._corrected.inc(memories)
        self._counts["corrected"] += memories

    def retrieved(self, strategy: Strategy) -> None:
        """Count an answered retrieve request."""
        self._retrieved.labels(strategy).inc()
        self._counts["retrieved"] += 1
        self._counts["cross_mode"] += strategy == "cross_mode"

    def __call__(self) -> dict[str, Any]:
        """Return shares in 0..1, None without any counts."""
        return {
            "cross_mode_share": self._share("cross_mode", "retrieved"),
            "model_agreement": self._share("agreed", "answered"),
            "worker_corrections_per_hundred": self._share("corrected", "decided", 100),
        }

    def _share(self, part: str, whole: str, of: int = 1) -> float | None:
        return round(of * self._counts[part] / self._counts[whole], 4) if self._counts[whole] else None


AWAY_AFTER_S = 5.0
"""How long a dependency must have answered nothing to be away: where others are answered, one record is retried."""

AWAY_WINDOW_S = 90.0
"""How long a retry says that a dependency is away: three times the longest attempt, that of Kafka's producer."""

REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets of durations."""


class Meters:
    """One worker's metrics; the help text of each says what it means for an operator."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.registry = registry = CollectorRegistry()
        self.usage = Usage(registry)
        self._work = 0.0
        self._now = now
        self._waited_at: dict[str, float] = {}
        self._silent_since: dict[str, float] = {}
        self._settled = _counter(registry, "settled", "Records finished and acknowledged.")
        self._handled = _counter(registry, "handled", "Records handled and answered.", "topic")
        self._moved = _counter(registry, "moved", "Records in a wrong partition: fix their producers.", "topic")
        self._expired = _counter(registry, "expired", "Requests past their deadline: the worker is behind.", "topic")
        self._rejected = _counter(registry, "rejected", "Records rejected, by error code.", "topic", "code")
        self._lost_replies = _counter(registry, "replies_given_up", "Replies dropped: no such topic or partition.")
        self._retries = _counter(registry, "retries", "Retries of something unavailable.", "what")
        self._embedded = _counter(registry, "embedded", "Texts embedded, by outcome.", "status")
        self.lag = Gauge("modestream_lag", "Records not yet handled.", ["topic"], registry=registry)
        self._fallback = Gauge(
            "modestream_interaction_fallback",
            "1 while only confident interaction modes are used, by reason.",
            ["reason"],
            registry=registry,
        )
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
        self._waited_at[what] = now = self._now()
        self._silent_since.setdefault(what, now)

    def answered(self, what: str) -> None:
        """Note that something answers."""
        self._silent_since.pop(what, None)

    def is_away(self) -> bool:
        """True if something was waited for lately, and has answered nothing since."""
        now = self._now()
        return any(
            now - since > AWAY_AFTER_S and now - self._waited_at[what] < AWAY_WINDOW_S
            for what, since in self._silent_since.items()
        )

    def embedded(self, status: str) -> None:
        """Count an embedded text."""
        self._embedded.labels(status).inc()

    def watch_fallback(self, reasons: Sequence[str], current: Callable[[], Collection[str]]) -> None:
        """Report at each scrape which of the possible reasons hold."""

        def holds(reason: str) -> float:
            return float(reason in current())

        for reason in reasons:
            self._fallback.labels(reason).set_function(partial(holds, reason))

    def settled(self, records: int) -> None:
        """Count acknowledged records."""
        self._settled.inc(records)
        self._work += records

    def work_done(self) -> float:
        """Return a number that grows with any work; retries are none."""
        return self._work

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _counter(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Counter:
    return Counter(f"modestream_{name}", help_text, labels, registry=registry)
