"""Metrics of language models by profile: calls, answers, tokens, cost."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

MODEL_CALL_BUCKETS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""Upper bounds of the buckets of a call's duration."""

BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}
"""A circuit breaker's state as a number: above 0 calls fail."""

ANSWER_OUTCOMES = ("valid", "repaired", "unanswerable")
"""How questions to a model are answered."""


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
        """Count the tokens and the cost of an answered request."""
        self._tokens.labels(profile, "in").inc(tokens_in)
        self._tokens.labels(profile, "out").inc(tokens_out)
        self._cost.labels(profile).inc(cost_usd or 0.0)

    def answered(self, profile: str, outcome: str) -> None:
        """Count a question by outcome: valid, repaired or unanswerable."""
        self._answers.labels(profile, outcome).inc()

    def watch_breaker(self, profile: str, state: Callable[[], str]) -> None:
        """Export a breaker's state at each scrape, and the profile's answers from now on, with 0."""
        for outcome in ANSWER_OUTCOMES:
            self._answers.labels(profile, outcome)
        self._breaker.labels(profile).set_function(lambda: BREAKER_STATES[state()])
