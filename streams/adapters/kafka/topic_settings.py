"""Corrects the settings of the worker's own topics that exist already.

A changelog that was made with `cleanup.policy=delete` loses memories, one with a smaller limit refuses records, and one
that keeps the writer's timestamps refuses those of a worker whose clock is an hour ahead. Settings of topics that
clients write to, and retention, belong to the operator: they are left alone.
"""

from collections.abc import Mapping
from typing import Any

import structlog
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError, for_code

from schemas.failures import Unavailable
from streams.adapters.kafka.admin_connection import connected_admin
from streams.settings import Settings

SET_BY_TOPIC = 1
"""Kafka's `ConfigSource` of a value that the topic itself has; others are defaults."""

TopicSettings = Mapping[str, Mapping[str, str]]
"""Values by setting, by topic."""

log = structlog.get_logger()


async def correct_topic_settings(settings: Settings, wanted: TopicSettings) -> TopicSettings:
    """Give topics the wanted settings where theirs lose or refuse records; return what was changed.

    Other settings of the topics stay. Raises Unavailable while Kafka does not answer, ValueError if it refuses.
    """
    try:
        async with connected_admin(settings) as admin:
            return await _correct(admin, wanted)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem


async def _correct(admin: AIOKafkaAdminClient, wanted: TopicSettings) -> TopicSettings:
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, configs=None) for topic in wanted]
    changed: dict[str, Mapping[str, str]] = {}
    complete: dict[str, Mapping[str, str]] = {}
    for response in await admin.describe_configs(resources):
        for code, _, _, topic, entries in response.resources:
            error = for_code(code)
            if error is TopicAuthorizationFailedError:
                log.warning("settings of a topic may not be read, they are not checked", topic=topic)
                continue
            if code:
                # An empty description is no reason to replace all settings.
                raise Unavailable(f"the settings of {topic} can't be read: {error.__name__}")
            found = {entry[0]: entry[1] for entry in entries}
            wrong = {name: value for name, value in wanted[topic].items() if not is_right(name, found.get(name), value)}
            if wrong:
                changed[topic] = wrong
                # The request replaces all settings that the topic itself has.
                complete[topic] = {entry[0]: entry[1] for entry in entries if entry[3] == SET_BY_TOPIC} | wrong
    if complete:
        await _alter(admin, complete)
        log.warning("settings of topics corrected", topics=changed)
    return changed


def is_right(name: str, found: str | None, wanted: str) -> bool:
    """True if a setting of a topic does no harm: limits of records may be higher, those of compaction lower."""
    if name == "max.message.bytes":
        return found is not None and int(found) >= int(wanted)
    if name == "max.compaction.lag.ms":
        return found is not None and int(found) <= int(wanted)
    return found == wanted


async def _alter(admin: AIOKafkaAdminClient, complete: TopicSettings) -> None:
    altered = [ConfigResource(ConfigResourceType.TOPIC, topic, dict(values)) for topic, values in complete.items()]
    responses: list[Any] = await admin.alter_configs(altered)
    for code, message, _, topic in [one for response in responses for one in response.resources]:
        if code:
            raise ValueError(f"{topic} needs the settings {dict(complete[topic])}: {for_code(code).__name__} {message}")
