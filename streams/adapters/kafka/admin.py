"""Topics and committed offsets, through Kafka's admin protocol."""

import asyncio
from collections.abc import Mapping

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from schemas.failures import Unavailable
from streams.settings import Settings

log = structlog.get_logger()


async def ensure_topics(settings: Settings, wanted: Mapping[str, Mapping[str, str]]) -> None:
    """Create the topics that are missing, in one request, all with the same number of partitions.

    `wanted` has each topic's configuration by its name. Raises Unavailable while Kafka can't be reached, ValueError
    for a topic with another number of partitions.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    try:
        await admin.start()
        existing = {one["topic"]: len(one["partitions"]) for one in await admin.describe_topics()}
        for topic in wanted:
            _check_partitions(topic, existing.get(topic, settings.partitions), settings.partitions)
        missing = {topic: config for topic, config in wanted.items() if topic not in existing}
        if missing:
            await _create(admin, settings, missing)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem
    finally:
        await admin.close()


def _check_partitions(topic: str, found: int, wanted: int) -> None:
    if found != wanted:
        message = (
            f"{topic} has {found} partitions and MODESTREAM_PARTITIONS is {wanted}, which can't be changed later: set"
            f" MODESTREAM_PARTITIONS to {found}"
        )
        raise ValueError(message)


async def _create(admin: AIOKafkaAdminClient, settings: Settings, missing: Mapping[str, Mapping[str, str]]) -> None:
    partitions, replicas = settings.partitions, settings.replication_factor
    topics = [NewTopic(topic, partitions, replicas, topic_configs=dict(config)) for topic, config in missing.items()]
    for topic, code, *_ in (await admin.create_topics(topics)).topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise error(topic)
    log.info("topics created", topics=list(missing))


async def committed_offsets(settings: Settings, group: str) -> Mapping[tuple[str, int], int]:
    """Return a consumer group's committed offsets by topic and partition; waits until Kafka answers."""
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
        try:
            await admin.start()
            offsets = await admin.list_consumer_group_offsets(group)
            return {(of.topic, of.partition): committed.offset for of, committed in offsets.items()}
        except (KafkaError, OSError) as problem:
            log.warning("committed offsets can't be read yet", problem=repr(problem))
            await asyncio.sleep(1)
        finally:
            await admin.close()
