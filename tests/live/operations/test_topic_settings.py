"""Settings of the worker's topics that were made otherwise are corrected, and the operator's stay."""

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streams.adapters.kafka.clients import correct_topic_settings, ensure_topics, is_right
from streams.settings import Settings
from streams.topics import CHANGELOG
from tests.worlds.live.broker import RunningBroker


async def settings_of(broker: RunningBroker, topic: str) -> dict[str, str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    finally:
        await admin.close()
    return {entry[0]: entry[1] for entry in response.resources[0][4]}


async def test_changelog_that_deletes_is_compacted_from_now_on(live_broker: RunningBroker, prefix: str) -> None:
    settings, topic = Settings(broker=live_broker.bootstrap, topic_prefix=prefix, partitions=1), f"{prefix}changelog"
    await ensure_topics(settings, {topic: {"cleanup.policy": "delete", "min.insync.replicas": "1"}})
    changed = await correct_topic_settings(settings, {topic: CHANGELOG})
    assert changed[topic]["cleanup.policy"] == "compact"
    now = await settings_of(live_broker, topic)
    assert {name: now[name] for name in CHANGELOG} == CHANGELOG
    assert now["min.insync.replicas"] == "1"
    assert await correct_topic_settings(settings, {topic: CHANGELOG}) == {}


@pytest.mark.parametrize(
    ("name", "found", "right"),
    [
        ("max.message.bytes", "100", True),
        ("max.message.bytes", "9", False),
        ("max.compaction.lag.ms", "9", True),
        ("max.compaction.lag.ms", "100", False),
        ("cleanup.policy", "10", True),
        ("cleanup.policy", None, False),
    ],
)
def test_stricter_settings_stay(name: str, found: str | None, *, right: bool) -> None:
    assert is_right(name, found, "10") is right
