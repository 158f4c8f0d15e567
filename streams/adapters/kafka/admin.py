"""Topics and committed offsets, through Kafka's admin protocol."""

import asyncio
from collections.abc import Mapping

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from schemas.failures import Unavailable
from streams.settings import Settings
from streams.topics import Topics, configuration

log = structlog.get_logger()


async def ensure_topics(settings: Settings, topics: Topics) -> None:
    """Create the topics that are missing, all with the same number of partitions.

    Raises Unavailable while Kafka can't be reached, ValueError for a topic that has another number of partitions.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    try:
        await admin.start()
        existing = {one["topic"]: len(one["partitions"]) for one in await admin.describe_topics()}
        for topic in topics.all():
            _check(topic, existing.get(topic, settings.partitions), settings.partitions)
        await _create(admin, settings, topics, [topic for topic in topics.all() if topic not in existing])
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem
    finally:
        await admin.close()


def _check(topic: str, there: int, wanted: int) -> None:
    if there != wanted:
        message = f"{topic} has {there} partitions and MODESTREAM_PARTITIONS is {wanted}; it can't be changed later"
        raise ValueError(message)


async def _create(admin: AIOKafkaAdminClient, settings: Settings, topics: Topics, missing: list[str]) -> None:
    if not missing:
        return
    wanted = [
        NewTopic(topic, settings.partitions, settings.replication_factor, topic_configs=configuration(topics, topic))
        for topic in missing
    ]
    response = await admin.create_topics(wanted)
    for topic, code, *_ in response.topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise error(topic)
    log.info("topics created", topics=missing)


async def committed_offsets(settings: Settings, group: str) -> Mapping[tuple[str, int], int]:
    """What a consumer group has committed, by topic and partition; waits for Kafka as long as it takes."""
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
        try:
            await admin.start()
            offsets = await admin.list_consumer_group_offsets(group)
            return {(place.topic, place.partition): there.offset for place, there in offsets.items()}
        except (KafkaError, OSError) as problem:
            log.warning("committed offsets can't be read yet", problem=repr(problem))
            await asyncio.sleep(1)
        finally:
            await admin.close()
