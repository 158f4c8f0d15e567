"""Names and Kafka settings of all topics, and how long the logs keep texts. All have the same partition count and key.

So an agent finds its table shard, and a reader its writer, in its own process. Without `TURNS_KEPT_HOURS` and
`ERASE_WITHIN_HOURS` nothing differs from the settings given here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from streams.settings import Settings

REQUEST_RETENTION_MS = 24 * 3600 * 1000

KEPT_HOURS = {"runs": 168.0, "contexts": 720.0}
"""Defaults of the settings `RUNS_KEPT_HOURS`, a week, and `CONTEXT_LOG_HOURS`, a month, by topic."""

SEGMENTS_KEPT = 8
"""Segments of run records, and of contexts, within their retention time: what is too old is on the disk for an eighth
more."""

MIN_SEGMENT_MS = 60_000

MAX_INPUT_BYTES = 8 * 1024 * 1024
"""The largest record that producers may write."""

MAX_OUTPUT_BYTES = 2 * MAX_INPUT_BYTES
"""The largest record of internal topics: any input fits into a dead letter or an event, headers included."""

COMPRESSION = "zstd"
"""How workers pack events and changelog records: a burst of them takes a fifth of its bytes, in 10 us a record. Replies
are not packed: a client would need a library to read them."""

OWN_TIMESTAMPS = {"message.timestamp.type": "LogAppendTime"}
"""Kafka's setting of topics that only workers write to. Timestamps of a worker whose clock is more than an hour ahead
would be refused, and nothing be answered until it is set right."""

CHANGELOG = {
    **OWN_TIMESTAMPS,
    "cleanup.policy": "compact",
    "max.message.bytes": str(MAX_OUTPUT_BYTES),
    "max.compaction.lag.ms": str(24 * 3600 * 1000),
}
"""Kafka's settings of a table's changelog, and of other topics that keep the last record of each key. Within a day only
the last one is left: without a limit, the text of a forgotten memory could stay in the newest segment for ever."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics that the agents read and write."""

    turns: str
    retrieve: str
    commands: str
    consolidate: str
    replies: str
    dead_letters: str
    boundaries: str
    changes: str
    remembered: str
    understood: str
    embedded: str
    jobs: str
    asked: str
    learned: str
    consolidated: str
    service: str
    pipelines: str
    runs: str
    archive: str
    contexts: str
    receipts: str

    def all(self) -> list[str]:
        return [getattr(self, field.name) for field in fields(self)]

    def consumed(self) -> list[str]:
        """Return the names of the topics that agents of workers read."""
        told = (self.replies, self.dead_letters, self.boundaries, self.service, self.pipelines, self.archive)
        return [name for name in self.all() if name not in (*told, self.runs, self.contexts, self.receipts)]

    def kept_whole(self) -> frozenset[str]:
        """Return the names of the topics of which nothing is compacted, or of which no record has a user's text."""
        inputs = {self.commands, self.consolidate}
        without_texts = {self.service, self.pipelines, self.runs, self.contexts, self.receipts}
        return frozenset({*inputs, self.dead_letters, *without_texts})

    def internal_events(self) -> frozenset[str]:
        """Return the names of the topics with events of workers for workers."""
        return frozenset(
            {
                self.changes,
                self.remembered,
                self.understood,
                self.embedded,
                self.jobs,
                self.asked,
                self.learned,
                self.consolidated,
            }
        )

    def inputs(self) -> frozenset[str]:
        """Return the names of the topics that clients write to."""
        return frozenset({self.turns, self.retrieve, self.commands, self.consolidate})


def topics_with_prefix(prefix: str) -> Topics:
    """Return the topics with a prefix such as `memory.`."""
    return Topics(**{field.name: prefix + field.name.replace("_", "-") for field in fields(Topics)})


def topic_config(topics: Topics, topic: str, kept_hours: Mapping[str, float] = KEPT_HOURS) -> dict[str, str]:
    """Return Kafka's settings of a topic. Only requests, replies and run records have a retention time.

    Input topics are uncompressed: so the broker decompresses what producers send, and rejects what is too large then. A
    compressed batch of a few kilobytes may hold gigabytes.
    """
    if topic == topics.service:
        # A few small records, which any client can read: of those in other languages few bring zstd.
        return {**CHANGELOG, "compression.type": "uncompressed"}
    if topic in (topics.boundaries, topics.pipelines, topics.archive, topics.receipts):
        return CHANGELOG
    inputs = topics.inputs()
    short_lived = (topics.retrieve, topics.replies)
    for name, hours in kept_hours.items():
        if topic == getattr(topics, name):
            # Kafka's settings of records with a retention time of their own. Whole segments are deleted, so these are
            # shorter than the retention.
            kept_ms = round(hours * 3600 * 1000)
            return {
                **OWN_TIMESTAMPS,
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": str(kept_ms),
                "segment.ms": str(max(kept_ms // SEGMENTS_KEPT, MIN_SEGMENT_MS)),
                "max.message.bytes": str(MAX_OUTPUT_BYTES),
            }
    return {
        # The timestamp of a question is one of the things by which it is known again.
        **({} if topic in inputs or topic == topics.asked else OWN_TIMESTAMPS),
        "cleanup.policy": "delete",
        "compression.type": "uncompressed" if topic in inputs else "producer",
        "retention.ms": str(REQUEST_RETENTION_MS if topic in short_lived else -1),
        "max.message.bytes": str(MAX_INPUT_BYTES if topic in inputs else MAX_OUTPUT_BYTES),
    }


def topic_configs(topics: Topics, kept_hours: Mapping[str, float]) -> dict[str, dict[str, str]]:
    return {name: topic_config(topics, name, kept_hours) for name in topics.all()}


REPAIRED_SETTINGS = ("cleanup.policy", "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.type")
"""Topic settings that a worker corrects on its own topics; no other setting can lose a record."""

RETENTION_SETTINGS = ("retention.ms", "segment.ms")


def repaired_settings(topics: Topics, topic: str) -> tuple[str, ...]:
    """Return the settings that a worker corrects on one of its topics: for runs and contexts, the retention too."""
    if topic == topics.service:
        return (*REPAIRED_SETTINGS, "compression.type")
    has_retention = topic in (topics.runs, topics.contexts)
    return (*REPAIRED_SETTINGS, *RETENTION_SETTINGS) if has_retention else REPAIRED_SETTINGS


def kept_hours(settings: Settings) -> Mapping[str, float]:
    """Return the retention of topics that have their own setting, in hours, by topic."""
    return {"runs": settings.runs_kept_hours, "contexts": settings.context_log_hours}


def group_id(settings: Settings) -> str:
    """Return the consumer group of the workers, which is also the prefix of their changelog topics."""
    return f"{settings.topic_prefix}worker"


def changelog(settings: Settings, table: str) -> str:
    return f"{group_id(settings)}-{table}-changelog"


MAX_PASS_INTERVAL_S = 600.0
"""The pause between two passes over the logs; each takes some requests to the broker."""

MIN_PASS_INTERVAL_S = 1.0

PASSES_PER_PERIOD = 16
"""Passes within the time that turns are kept, or a text may be left: late by a sixteenth of it at most."""

SEGMENTS_PER_PERIOD = 8
"""Kafka deletes and compacts whole segments that are no longer written to: what is too old stays an eighth longer."""

ERASED_BY_QUARTERS = 4
"""A quarter of the time of an erasure is that in which turns and events are kept, and another one that in which a
changelog is left uncompacted; what is left is for segments, and for the broker's own intervals, some six minutes."""


@dataclass(frozen=True, slots=True)
class LogRetention:
    """Times in seconds. `turns_kept_s` None: turns are kept for ever; `erased_s` None: nothing is erased by a time."""

    turns_kept_s: float | None
    events_kept_s: float
    erased_s: float | None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the settings ask for. An erasure limits how long turns and events are kept."""
        erased_s = _seconds(settings.erase_within_hours)
        kept_s = _seconds(settings.turns_kept_hours)
        events_s = settings.events_kept_hours * 3600
        if erased_s is None:
            return cls(kept_s, events_s, None)
        quarter_s = erased_s / ERASED_BY_QUARTERS
        return cls(min(quarter_s, quarter_s if kept_s is None else kept_s), min(quarter_s, events_s), erased_s)

    @property
    def pass_interval_s(self) -> float:
        """The pause between two passes over the logs."""
        periods = [period_s for period_s in (self.turns_kept_s, self.erased_s) if period_s is not None]
        shortest = min(periods, default=MAX_PASS_INTERVAL_S * PASSES_PER_PERIOD)
        return min(MAX_PASS_INTERVAL_S, max(MIN_PASS_INTERVAL_S, shortest / PASSES_PER_PERIOD))

    @property
    def erasure_interval_s(self) -> float | None:
        """The pause between two erasures; None: nothing is erased."""
        return None if self.erased_s is None else self.erased_s / SEGMENTS_PER_PERIOD

    def topic_settings(self, topics: Topics, topic: str) -> Mapping[str, str]:
        """Return the settings in which a topic differs from `streams.topics.topic_config`."""
        kept_s = self.turns_kept_s if topic == topics.turns else self.events_kept_s
        if topic == topics.turns or topic in topics.internal_events():
            return {} if self.turns_kept_s is None or kept_s is None else {"segment.ms": _segment_ms(kept_s)}
        if self.erased_s is None:
            return {}
        if topic in (topics.retrieve, topics.replies):
            kept_ms = min(REQUEST_RETENTION_MS, round(self.erased_s / 2 * 1000))
            return {"retention.ms": str(kept_ms), "segment.ms": _segment_ms(self.erased_s)}
        return {} if topic in topics.kept_whole() else self.changelog_settings()

    def changelog_settings(self) -> Mapping[str, str]:
        """Return the settings in which a changelog differs."""
        if self.erased_s is None:
            return {}
        lag_ms = round(self.erased_s / ERASED_BY_QUARTERS * 1000)
        return {"max.compaction.lag.ms": str(lag_ms), "segment.ms": _segment_ms(self.erased_s)}


def _segment_ms(period_s: float) -> str:
    return str(max(round(period_s / SEGMENTS_PER_PERIOD * 1000), MIN_SEGMENT_MS))


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * 3600
