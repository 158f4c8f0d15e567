"""A connection to Kafka's admin protocol for one task: an idle one may be closed by either side."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient

from streams.settings import Settings


@asynccontextmanager
async def connected_admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a connected client; closed with the block. Raises KafkaError or OSError."""
    admin = AIOKafkaAdminClient(**settings.kafka_connection)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()
