"""The gateway's metrics. No label names a user, a key, or anything that a caller could make up."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

from modestream_client.failures import MemoryClientError, MemoryServiceError, MemoryTimeout, MemoryUnreachable
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from schemas.version import RELEASE, VERSION

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of durations; a caller may wait 60 s."""

TOPICS = ("turns", "retrieve", "commands", "consolidate")

LIMITS = (
    *("reads", "writes", "streams_per_key", "open_streams", "in_flight", "in_flight_per_key", "in_flight_per_address"),
    *("connections", "connections_closed", "header_bytes", "header_seconds", "body_seconds", "body_bytes"),
    "body_bytes_per_sender",
)
"""Limits that refuse a request, or close a waiting connection."""

FAILURES = ("timeout", "not_written", "unreachable", "closed", "internal", "unavailable")


class Meters:
    """One gateway's metrics; the help text of each says what it means for an operator."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        info = Gauge("modestream_info", "Running version and release.", ["version", "release"], registry=registry)
        info.labels(VERSION, str(RELEASE)).set(1)
        self.requests = Counter(
            "modestream_gateway_requests",
            "Requests over HTTP, by the template of their route; `none`: refused before, or no route.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "modestream_gateway_request_seconds",
            "Time to answer a request; without streams.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge("modestream_gateway_in_flight", "Requests under way.", registry=registry)
        self.open_streams = Gauge("modestream_gateway_open_streams", "Events and exports.", registry=registry)
        self.limited = Counter(
            "modestream_gateway_limited", "Requests refused, by the limit.", ["limit"], registry=registry
        )
        self.tools = Counter(
            "modestream_gateway_tools", "Tools called, by `ok` or error code.", ["tool", "outcome"], registry=registry
        )
        self.service_seconds = Histogram(
            "modestream_gateway_service_seconds",
            "Time of a record to the worker and of its reply back, failures included.",
            ["topic"],
            buckets=SECONDS,
            registry=registry,
        )
        self._service_failures = Counter(
            "modestream_gateway_service_failures",
            "Records without a reply: Kafka or the worker is away or slow.",
            ["topic", "failure"],
            registry=registry,
        )
        self.openai_memory = Counter(
            "modestream_gateway_openai_memory",
            "Completions of OpenAI's address, by whether memory was `used` or `unavailable`.",
            ["memory"],
            registry=registry,
        )
        self.openai_turns = Counter(
            "modestream_gateway_openai_turns",
            "Turns of OpenAI's address: `stored` in Kafka, `refused`, or `dropped` as too many wait.",
            ["outcome"],
            registry=registry,
        )
        self.openai_waiting = Gauge(
            "modestream_gateway_openai_waiting", "Turns of OpenAI's address that Kafka has not yet.", registry=registry
        )
        for outcome in ("stored", "refused", "dropped"):
            self.openai_turns.labels(outcome)
        for memory in ("used", "unavailable"):
            self.openai_memory.labels(memory)
        for limit in LIMITS:
            self.limited.labels(limit)
        # With 0 from the start: Prometheus sees no increase in a series that begins with 1.
        for topic, failure in product(TOPICS, FAILURES):
            self._service_failures.labels(topic, failure)

    @contextmanager
    def round_trip(self, topic: str) -> Iterator[None]:
        """Time the block's request to a topic, and count its failure."""
        began = time.perf_counter()
        try:
            yield
        except MemoryClientError as error:
            if (failure := _failure_of(error)) is not None:
                self._service_failures.labels(topic, failure).inc()
            raise
        finally:
            self.service_seconds.labels(topic).observe(time.perf_counter() - began)


def _failure_of(error: MemoryClientError) -> str | None:
    """Return the name of a failed round trip; None if the service has answered, even with a refusal."""
    if isinstance(error, MemoryServiceError):
        return error.code if error.code in ("internal", "unavailable") else None
    if isinstance(error, MemoryTimeout):
        return "timeout" if error.is_written else "not_written"
    return "unreachable" if isinstance(error, MemoryUnreachable) else "closed"
