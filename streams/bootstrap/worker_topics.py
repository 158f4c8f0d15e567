"""The topics of a deployment at the start of a worker: missing ones are created, with the settings they need.

Ends the process, with the reason, if a topic contradicts these settings.
"""

import sys
from collections.abc import Collection, Mapping
from functools import partial

from streams.adapters.kafka.admin import NotProvisioned, correct_topic_settings, ensure_topics
from streams.backoff import until_available
from streams.bootstrap.scope_guard import MIGRATE
from streams.bootstrap.topic_settings import TopicSettings
from streams.observability.metrics import Meters
from streams.settings import Settings

VALIDATES = "setting MODESTREAM_PROVISION is `validate`"
CREATE_THEM = "create what is missing, or start a worker with `create` once"

TopicConfigs = Mapping[str, dict[str, str]]
"""The Kafka settings of topics, by name."""


async def prepare_topics(settings: Settings, topics: TopicSettings, meters: Meters) -> Collection[str]:
    """Create missing topics and correct the others' settings, once Kafka is there; return the names of new ones."""
    created = await until_available(partial(create_topics, settings, topics.wanted()), "kafka", meters)
    await until_available(partial(correct_topics, settings, topics.corrected()), "kafka", meters)
    return created


async def create_topics(settings: Settings, configs: TopicConfigs) -> Collection[str]:
    """Create missing topics; return their names. Raises Unavailable."""
    try:
        return await ensure_topics(settings, dict(configs))
    except NotProvisioned as problem:
        sys.exit(f"{VALIDATES}: {problem}; {CREATE_THEM}")
    except ValueError as problem:
        sys.exit(f"setting MODESTREAM_PARTITIONS: {problem}\n{MIGRATE}")


async def correct_topics(settings: Settings, configs: TopicConfigs) -> None:
    """Correct operators' changes to the worker's own topics, and apply requested settings. Raises Unavailable."""
    try:
        await correct_topic_settings(settings, dict(configs))
    except NotProvisioned as problem:
        sys.exit(f"{VALIDATES}: {problem}; set them, or start a worker with `create` once")
    except ValueError as problem:
        sys.exit(f"settings of topics: {problem}")
