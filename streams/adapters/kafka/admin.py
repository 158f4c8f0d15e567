"""Topics and committed offsets, through Kafka's admin protocol."""

import asyncio
from collections.abc import Iterable, Mapping

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from schemas.failures import Unavailable
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.topic_metadata import partitions_of_topics
from streams.settings import Settings
from streams.topics import topics_with_prefix

log = structlog.get_logger()


async def ensure_topics(settings: Settings, wanted: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Create the topics that are missing, in one request, all with the same number of partitions; return their names.

    `wanted` has each topic's configuration by its name. Topics that clients write to may have more partitions: records
    there are moved. Raises Unavailable while Kafka can't be reached, ValueError for any other number of partitions.
    """
    try:
        async with connected_admin(settings) as admin:
            return await _ensure(admin, settings, wanted)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem


async def _ensure(
    admin: AIOKafkaAdminClient, settings: Settings, wanted: Mapping[str, Mapping[str, str]]
) -> frozenset[str]:
    existing = await _check_partitions(admin, settings, wanted)
    missing = {topic: config for topic, config in wanted.items() if topic not in existing}
    created = await _create(admin, settings, missing) if missing else frozenset()
    if len(created) < len(missing):
        # Another worker has created topics in between, perhaps with another number of partitions.
        existing = await _check_partitions(admin, settings, wanted)
        if not existing.issuperset(wanted):
            raise Unavailable("topics of another worker are not visible yet")
    return created


async def _check_partitions(admin: AIOKafkaAdminClient, settings: Settings, wanted: Iterable[str]) -> set[str]:
    """Return the topics that exist. Raises ValueError for one of `wanted` with a wrong number of partitions."""
    existing = {topic: len(partitions) for topic, partitions in (await partitions_of_topics(admin)).items()}
    inputs = topics_with_prefix(settings.topic_prefix).inputs()
    for topic in wanted:
        found = existing.get(topic, settings.partitions)
        if topic in inputs and found > settings.partitions:
            log.warning("records are moved from partitions beyond the setting", topic=topic, partitions=found)
        elif found != settings.partitions:
            raise ValueError(f"{topic} was created with {found} partitions, not {settings.partitions}")
    return set(existing)


async def count_partitions(settings: Settings, topic: str) -> int:
    """Return the number of partitions of a topic, 0 for one that is missing. Raises Unavailable."""
    try:
        async with connected_admin(settings) as admin:
            return len((await partitions_of_topics(admin, [topic])).get(topic, ()))
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem


async def _create(
    admin: AIOKafkaAdminClient, settings: Settings, missing: Mapping[str, Mapping[str, str]]
) -> frozenset[str]:
    """Create topics. Return their names, without those that another worker has created meanwhile."""
    partitions, replicas = settings.partitions, settings.replication_factor
    topics = [NewTopic(topic, partitions, replicas, topic_configs=dict(config)) for topic, config in missing.items()]
    created = set(missing)
    for topic, code, *_ in (await admin.create_topics(topics)).topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise error(topic)
        if code:
            created.remove(topic)
    log.info("topics created", topics=sorted(created))
    return frozenset(created)


async def committed_offsets(settings: Settings, group: str) -> Mapping[tuple[str, int], int]:
    """Return a consumer group's committed offsets by topic and partition; waits until Kafka answers."""
    while True:
        try:
            async with connected_admin(settings) as admin:
                offsets = await admin.list_consumer_group_offsets(group)
            return {(of.topic, of.partition): committed.offset for of, committed in offsets.items()}
        except (KafkaError, OSError) as problem:
            log.warning("committed offsets can't be read yet", problem=repr(problem))
            await asyncio.sleep(1)
