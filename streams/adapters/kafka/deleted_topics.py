"""The topics of a deployment that was replaced, and their deletion."""

from collections.abc import Collection

from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from schemas.failures import Unavailable
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.topic_metadata import partitions_of_topics
from streams.settings import Settings
from streams.topics import group_id, topics_with_prefix


async def topics_of_deployment(settings: Settings) -> frozenset[str]:
    """Return the topics that are there, changelogs included, without `service`. Raises Unavailable."""
    topics = topics_with_prefix(settings.topic_prefix)
    own = {*topics.all()} - {topics.service}
    try:
        async with connected_admin(settings) as admin:
            every = await partitions_of_topics(admin)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem
    # By name, not by prefix: that of another deployment may begin alike.
    changelogs = f"{group_id(settings)}-"
    return frozenset(name for name in every if name in own or name.startswith(changelogs))


async def delete_topics(settings: Settings, names: Collection[str]) -> int:
    """Delete topics; one that is gone counts. Return their number. Raises Unavailable."""
    try:
        async with connected_admin(settings) as admin:
            response = await admin.delete_topics(list(names))
        for name, code in response.topic_error_codes:
            error = for_code(code)
            if code and error is not UnknownTopicOrPartitionError:
                raise error(name)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"topics of {settings.topic_prefix} can't be deleted: {problem!r}") from problem
    return len(names)
