"""The topics of a deployment at the start of a worker: created where they are missing, with the settings they need.

Ends the process where a topic is not that of these settings, with the reason.
"""

import sys
from collections.abc import Collection, Mapping

from streams.adapters.kafka.admin import ensure_topics
from streams.adapters.kafka.topic_settings import correct_topic_settings
from streams.bootstrap.scope_guard import MIGRATE
from streams.settings import Settings

TopicConfigs = Mapping[str, dict[str, str]]
"""The Kafka settings of topics, by name."""


async def create_topics(settings: Settings, configs: TopicConfigs) -> Collection[str]:
    """Create missing topics; return their names. Raises Unavailable."""
    try:
        return await ensure_topics(settings, dict(configs))
    except ValueError as problem:
        sys.exit(f"setting MODESTREAM_PARTITIONS: {problem}\n{MIGRATE}")


async def correct_topics(settings: Settings, configs: TopicConfigs) -> None:
    """Set what operators have changed in topics of the worker's own, and what is asked for. Raises Unavailable."""
    try:
        await correct_topic_settings(settings, dict(configs))
    except ValueError as problem:
        sys.exit(f"settings of topics: {problem}")
