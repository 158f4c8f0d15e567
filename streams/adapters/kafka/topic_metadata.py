"""The partitions of topics as the broker knows them.

A lookup never creates a topic: aiokafka's own would, on a broker that allows it, for any name that a caller gives as
its reply topic.
"""

from collections.abc import Collection, Mapping

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.metadata import MetadataRequest


async def partitions_of_topics(
    admin: AIOKafkaAdminClient, topics: Collection[str] | None = None
) -> Mapping[str, frozenset[int]]:
    """Return the partitions of these topics, or of all; missing topics have none. Raises KafkaError or OSError."""
    request = MetadataRequest(None if topics is None else list(topics), allow_auto_topic_creation=False)
    response = await admin._send_request(request)  # noqa: SLF001 (its own lookups may create topics)
    described = response.to_object()["topics"]
    return {one["topic"]: frozenset(part["partition"] for part in one["partitions"]) for one in described}
