"""Names and Kafka settings of all topics. All have the same partition count and key.

So an agent finds its table shard, and a reader its writer, in its own process.
"""

from dataclasses import dataclass, fields

from streams.settings import Settings

REQUEST_RETENTION_MS = 24 * 3600 * 1000

MAX_INPUT_BYTES = 8 * 1024 * 1024
"""The largest record that producers may write."""

MAX_OUTPUT_BYTES = 2 * MAX_INPUT_BYTES
"""The largest record of internal topics: any input fits into a dead letter or an event, headers included."""

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
    learned: str
    consolidated: str
    service: str
    pipelines: str

    def all(self) -> list[str]:
        """Return every name."""
        return [getattr(self, field.name) for field in fields(self)]

    def consumed(self) -> list[str]:
        """Return the names of the topics that agents of workers read."""
        written_only = (self.replies, self.dead_letters, self.boundaries, self.service, self.pipelines)
        return [name for name in self.all() if name not in written_only]

    def internal_events(self) -> frozenset[str]:
        """Return the names of the topics with events of workers for workers."""
        return frozenset(
            {self.changes, self.remembered, self.understood, self.embedded, self.jobs, self.learned, self.consolidated}
        )

    def inputs(self) -> frozenset[str]:
        """Return the names of the topics that clients write to."""
        return frozenset({self.turns, self.retrieve, self.commands, self.consolidate})


def topics_with_prefix(prefix: str) -> Topics:
    """Return the topics with a prefix such as `memory.`."""
    return Topics(**{field.name: prefix + field.name.replace("_", "-") for field in fields(Topics)})


def topic_config(topics: Topics, topic: str) -> dict[str, str]:
    """Return Kafka's settings of a topic. Only requests and replies have a retention time.

    Input topics are uncompressed: so the broker decompresses what producers send, and rejects what is too large then. A
    compressed batch of a few kilobytes may hold gigabytes.
    """
    if topic in (topics.service, topics.boundaries, topics.pipelines):
        return CHANGELOG
    inputs = topics.inputs()
    short_lived = (topics.retrieve, topics.replies)
    return {
        **({} if topic in inputs else OWN_TIMESTAMPS),
        "cleanup.policy": "delete",
        "compression.type": "uncompressed" if topic in inputs else "producer",
        "retention.ms": str(REQUEST_RETENTION_MS if topic in short_lived else -1),
        "max.message.bytes": str(MAX_INPUT_BYTES if topic in inputs else MAX_OUTPUT_BYTES),
    }


REPAIRED_SETTINGS = ("cleanup.policy", "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.type")
"""The settings that a worker corrects on its own topics: others lose no record."""


def group_id(settings: Settings) -> str:
    """Return the consumer group of the workers, which is also the prefix of their changelog topics."""
    return f"{settings.topic_prefix}worker"


def changelog(settings: Settings, table: str) -> str:
    """Return the changelog topic of a table."""
    return f"{group_id(settings)}-{table}-changelog"
