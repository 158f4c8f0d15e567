"""Metrics of the worker, and of its language models by profile: calls, answers, tokens, cost."""

import time
from collections import Counter as Counts
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, get_args

from modestream_client.vocabulary import ModeSource, Strategy
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from schemas.failures import ErrorCode
from schemas.internal.events import Embedded
from schemas.messages.published import Rating
from schemas.version import RELEASE, VERSION

VECTOR_STATUSES = ("pending", "ready", "stale", "failed")
"""States of memories that are eligible for a vector."""

MAX_COUNTED_USERS = 10_000
"""Users with counted questions and model answers, about 5 MB; the least recently counted one is dropped."""

OWN_COUNTS = ("questions", "cross_mode_questions", "model_answers", "model_agreements")
"""Counts of each user."""


MAX_RATED_MODES = 100
"""Names of modes that label ratings: users declare them."""


class Usage:
    """Counts turns by the source of their mode, agreement of models, corrections by users, and search strategies.

    Questions and the answers of models are counted by user as well.
    """

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
        self._rated = Counter(
            "modestream_ratings",
            "References of contexts that callers have rated, by mode and revision.",
            ["mode", "revision", "useful"],
            registry=registry,
        )
        self._rated_modes: set[str] = set()
        for source in get_args(ModeSource):
            self._decided.labels(source)
        for agrees in ("true", "false"):
            self._answered.labels(agrees)
        for strategy in get_args(Strategy):
            self._retrieved.labels(strategy)
        self._counts: Counts[str] = Counts()
        self._users: OrderedDict[str, Counts[str]] = OrderedDict()

    def decided(self, source: ModeSource) -> None:
        """Count a turn by the source of its mode."""
        self._decided.labels(source).inc()
        self._counts["turns"] += 1

    def model_answered(self, boundary: str, *, agrees: bool) -> None:
        """Count a model's choice; `agrees`: it equals the mode that the turn would have had without the model."""
        self._answered.labels(str(agrees).lower()).inc()
        self._count(boundary, "model_answers", "model_agreements", in_part=agrees)

    def corrected(self, memories: int = 1) -> None:
        """Count memories moved to another mode by command."""
        self._corrected.inc(memories)
        self._counts["corrections"] += memories

    def rated(self, rating: Rating) -> None:
        """Count a rating; modes beyond `MAX_RATED_MODES`, and several at once, as `other`."""
        mode = rating.mode if isinstance(rating.mode, str) else "other"
        if mode not in self._rated_modes and len(self._rated_modes) >= MAX_RATED_MODES:
            mode = "other"
        self._rated_modes.add(mode)
        for useful, ids in (("true", rating.useful), ("false", rating.not_useful)):
            self._rated.labels(mode, str(rating.revision), useful).inc(len(ids))

    def retrieved(self, boundary: str, strategy: Strategy) -> None:
        self._retrieved.labels(strategy).inc()
        self._count(boundary, "questions", "cross_mode_questions", in_part=strategy == "cross_mode")

    def __call__(self) -> dict[str, Any]:
        """Return shares in 0..1, None without any counts, and under `worker` the numbers behind them."""
        return {
            "cross_mode_share": self._share("cross_mode_questions", "questions"),
            "model_agreement": self._share("model_agreements", "model_answers"),
            "worker_corrections_per_hundred": self._share("corrections", "turns", 100),
            "worker": {name: self._counts[name] for name in ("turns", "corrections", *OWN_COUNTS)},
        }

    def of(self, boundary: str) -> dict[str, int]:
        """Return the counts of one user since this worker started."""
        counts = self._users.get(boundary, Counts())
        return {name: counts[name] for name in OWN_COUNTS}

    def _count(self, boundary: str, whole: str, part: str, *, in_part: bool) -> None:
        own = self._users.setdefault(boundary, Counts())
        self._users.move_to_end(boundary)
        if len(self._users) > MAX_COUNTED_USERS:
            self._users.popitem(last=False)
        for counts in (self._counts, own):
            counts[whole] += 1
            counts[part] += in_part

    def _share(self, part: str, whole: str, of: int = 1) -> float | None:
        return round(of * self._counts[part] / self._counts[whole], 4) if self._counts[whole] else None


AWAY_AFTER_S = 5.0
"""Time without any answer after which a dependency is away: if others are answered, only one record is retried."""

AWAY_WINDOW_S = 90.0
"""Time for which a retry marks a dependency as away: three times the longest attempt, that of Kafka's producer."""

REQUEST_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets of durations."""


DEPENDENCIES = ("kafka", "vector index", "storage", "embedder", "language model")

EVENT_CODES: tuple[ErrorCode, ...] = ("internal", "too_large")
"""Error codes of records that workers write for workers."""


class Meters:
    """One worker's metrics; the help text of each says what it means for an operator."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        info = Gauge("modestream_info", "Running version and release.", ["version", "release"], registry=registry)
        info.labels(VERSION, str(RELEASE)).set(1)
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
        self._dropped_runs = _counter(registry, "runs_dropped", "Run records dropped: Kafka did not take them in time.")
        self._archived = _counter(registry, "turns_archived", "Old turns written to the archive.")
        self._retention_delay = Gauge(
            "modestream_retention_delay",
            "Intervals since old turns were archived, or texts erased; above 3 it is failing.",
            ["what"],
            registry=registry,
        )
        self._retained_at: dict[str, float] = {}
        self._retries = _counter(registry, "retries", "Retries of something unavailable.", "what")
        self._embedded = _counter(registry, "embedded", "Texts embedded, by outcome.", "status")
        # With 0 from the start: Prometheus sees no increase in a series that begins with 1.
        for status in get_args(Embedded.model_fields["status"].annotation):
            self._embedded.labels(status)
        for what in DEPENDENCIES:
            self._retries.labels(what)
        self.lag = Gauge("modestream_lag", "Records not yet handled.", ["topic"], registry=registry)
        self.copy_lag = Gauge(
            "modestream_copy_lag",
            "Changelog records missing in the copy of another worker's partition; -1: not known yet.",
            ["partition"],
            registry=registry,
        )
        self._vectors = Gauge(
            "modestream_vectors",
            "Memories of this worker by the state of their vectors; `eligible` is the sum of the others.",
            ["status"],
            registry=registry,
        )
        self.partitions_awaited = Gauge(
            "modestream_partitions_awaited",
            "Partitions that another process of the data directory holds: this worker answers nothing meanwhile.",
            registry=registry,
        )
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

    def begin(self, inputs: Collection[str], events: Collection[str]) -> None:
        """Show the counts of these topics from now on, with 0; any error code is possible in an input topic."""
        for topic in (*inputs, *events):
            for counter in (self._handled, self._moved, self._expired):
                counter.labels(topic)
        codes = [(topic, code) for topic in inputs for code in get_args(ErrorCode)]
        for topic, code in (*codes, *product(events, EVENT_CODES)):
            self._rejected.labels(topic, code)

    def handled(self, topic: str) -> None:
        self._handled.labels(topic).inc()

    def moved(self, topic: str) -> None:
        self._moved.labels(topic).inc()

    def expired(self, topic: str) -> None:
        self._expired.labels(topic).inc()

    def rejected(self, topic: str, code: str) -> None:
        self._rejected.labels(topic, code).inc()

    def reply_given_up(self) -> None:
        self._lost_replies.inc()

    def run_dropped(self) -> None:
        """Count a run record that was not written."""
        self._dropped_runs.inc()

    def turns_archived(self, turns: int) -> None:
        self._archived.inc(turns)

    def watch_retention(self, what: str, interval_s: float) -> None:
        """Report at each scrape, from now on, how long ago `what` was done, in intervals."""
        self._retained_at[what] = self._now()
        self._retention_delay.labels(what).set_function(lambda: (self._now() - self._retained_at[what]) / interval_s)

    def retained(self, what: str) -> None:
        """Note that it is done."""
        self._retained_at[what] = self._now()

    def waited_for(self, what: str) -> None:
        self._retries.labels(what).inc()
        self._waited_at[what] = now = self._now()
        self._silent_since.setdefault(what, now)

    def answered(self, what: str) -> None:
        self._silent_since.pop(what, None)

    def is_away(self) -> bool:
        """True if a dependency was waited for lately, and has answered nothing since."""
        now = self._now()
        return any(
            now - since > AWAY_AFTER_S and now - self._waited_at[what] < AWAY_WINDOW_S
            for what, since in self._silent_since.items()
        )

    def embedded(self, status: str) -> None:
        self._embedded.labels(status).inc()

    def measure_vectors(self, counts: Mapping[str, int]) -> None:
        """Set the numbers of memories by the states of their vectors."""
        by_status = {status: counts.get(status, 0) for status in VECTOR_STATUSES}
        for status, number in {"eligible": sum(by_status.values()), **by_status}.items():
            self._vectors.labels(status).set(number)

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
        """Return a work counter; retries do not count."""
        return self._work

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _counter(registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Counter:
    return Counter(f"modestream_{name}", help_text, labels, registry=registry)


MODEL_CALL_BUCKETS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""Upper bounds of the buckets of a call's duration."""

BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}
"""A circuit breaker's state as a number: above 0 calls fail."""

ANSWER_OUTCOMES = ("valid", "repaired", "unanswerable")


class ModelMeters:
    """Metrics of all profiles. Cost is in US dollars; a model without a known price counts as 0."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "modestream_model_calls",
            "Requests to language models, by outcome.",
            ["profile", "outcome"],
            registry=registry,
        )
        self._answers = Counter(
            "modestream_model_answers", "Questions answered: valid, repaired or unanswerable.", ["profile", "outcome"],
            registry=registry,
        )  # fmt: skip
        self._tokens = Counter(
            "modestream_model_tokens",
            "Tokens sent (in) and received (out).",
            ["profile", "direction"],
            registry=registry,
        )
        self._cost = Counter(
            "modestream_model_cost_usd", "US dollars, if the price is known.", ["profile"], registry=registry
        )
        self._seconds = Histogram(
            "modestream_model_seconds",
            "Time of one request.",
            ["profile"],
            buckets=MODEL_CALL_BUCKETS_S,
            registry=registry,
        )
        self._breaker = Gauge(
            "modestream_model_breaker", "0 closed, 1 half-open, 2 open.", ["profile"], registry=registry
        )

    def called(self, profile: str, outcome: str, seconds: float) -> None:
        """Count a request by outcome: answered, or the kind of its fault."""
        self._calls.labels(profile, outcome).inc()
        self._seconds.labels(profile).observe(seconds)

    def spent(self, profile: str, tokens_in: int, tokens_out: int, cost_usd: float | None) -> None:
        self._tokens.labels(profile, "in").inc(tokens_in)
        self._tokens.labels(profile, "out").inc(tokens_out)
        self._cost.labels(profile).inc(cost_usd or 0.0)

    def answered(self, profile: str, outcome: str) -> None:
        self._answers.labels(profile, outcome).inc()

    def watch_breaker(self, profile: str, state: Callable[[], str]) -> None:
        """Export a breaker's state at each scrape, and the profile's answers from now on, with 0."""
        for outcome in ANSWER_OUTCOMES:
            self._answers.labels(profile, outcome)
        self._breaker.labels(profile).set_function(lambda: BREAKER_STATES[state()])
