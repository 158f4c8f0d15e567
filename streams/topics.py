"""Every topic by name, once, and how it is kept. All have the same partition count and the same key.

That is what lets an agent find its table shard, and a reader its writer, in its own process.
"""

from dataclasses import dataclass, fields

from streams.settings import Settings

REQUEST_RETENTION_MS = 24 * 3600 * 1000

MAX_INPUT_BYTES = 8 * 1024 * 1024
"""The largest record that producers may write."""

MAX_OUTPUT_BYTES = 2 * MAX_INPUT_BYTES
"""The largest that our own topics take: whatever came in fits into a dead letter or an event, with its headers."""

CHANGELOG = {"cleanup.policy": "compact", "max.message.bytes": str(MAX_OUTPUT_BYTES)}
"""Kafka's settings of a table's changelog: the newest record of each key is kept, and may be a large one."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics that the agents read and write."""

    turns: str
    retrieve: str
    commands: str
    consolidate: str
    replies: str
    dead_letters: str
    changes: str
    remembered: str
    understood: str
    embedded: str
    jobs: str
    learned: str
    consolidated: str

    def all(self) -> list[str]:
        """Every name."""
        return [getattr(self, field.name) for field in fields(self)]


def topics_with_prefix(prefix: str) -> Topics:
    """The topics below a prefix such as `memory.`."""
    return Topics(**{field.name: prefix + field.name.replace("_", "-") for field in fields(Topics)})


def topic_config(topics: Topics, topic: str) -> dict[str, str]:
    """Kafka's settings of a topic. Only requests and replies are ever deleted by age.

    What comes in is kept uncompressed: so the broker unpacks what its senders have packed, and refuses what is too
    large when it is unpacked. A batch of a few kilobytes may hold gigabytes.
    """
    inputs = (topics.turns, topics.retrieve, topics.commands, topics.consolidate)
    short_lived = (topics.retrieve, topics.replies)
    return {
        "cleanup.policy": "delete",
        "compression.type": "uncompressed" if topic in inputs else "producer",
        "retention.ms": str(REQUEST_RETENTION_MS if topic in short_lived else -1),
        "max.message.bytes": str(MAX_INPUT_BYTES if topic in inputs else MAX_OUTPUT_BYTES),
    }


def group_id(settings: Settings) -> str:
    """The consumer group of the workers, and the name that their tables' changelogs begin with."""
    return f"{settings.topic_prefix}worker"
