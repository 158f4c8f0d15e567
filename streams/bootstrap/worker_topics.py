"""The topics of a deployment at the start of a worker: created where they are missing, with the settings they need.

Ends the process where a topic is not that of these settings, with the reason.
"""

import sys
from collections.abc import Collection, Mapping

from streams.adapters.kafka.admin import ensure_topics
from streams.adapters.kafka.topic_settings import correct_topic_settings
from streams.bootstrap.scope_guard import MIGRATE
from streams.settings import Settings
from streams.topics import Topics, repaired_settings

TopicConfigs = Mapping[str, dict[str, str]]
"""The Kafka settings of topics, by name."""


async def create_topics(settings: Settings, configs: TopicConfigs) -> Collection[str]:
    """Create missing topics; return their names. Raises Unavailable."""
    try:
        return await ensure_topics(settings, dict(configs))
    except ValueError as problem:
        sys.exit(f"setting MODESTREAM_PARTITIONS: {problem}\n{MIGRATE}")


async def correct_topics(settings: Settings, topics: Topics, configs: TopicConfigs) -> None:
    """Set what operators have changed in topics of the worker's own. Raises Unavailable."""
    own = {
        topic: {name: config[name] for name in repaired_settings(topics, topic) if name in config}
        for topic, config in configs.items()
        if topic not in topics.inputs()
    }
    try:
        await correct_topic_settings(settings, own)
    except ValueError as problem:
        sys.exit(f"settings of topics: {problem}")
