"""Whether a broker is there."""

import asyncio

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

METADATA_TIMEOUT_MS = 5000
"""How long one request may take; whoever waits for a broker asks again."""


async def is_broker_reachable(bootstrap: str) -> bool:
    """Whether the broker at `host:port` answers a request for metadata."""
    host, _, port = bootstrap.rpartition(":")
    try:
        # Asked first, because the client logs an error for each attempt at a port where nobody listens yet.
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        return await _knows_a_broker(
            AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=METADATA_TIMEOUT_MS)
        )
    except (OSError, KafkaError):
        return False


async def _knows_a_broker(client: AIOKafkaClient) -> bool:
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    finally:
        await client.close()
