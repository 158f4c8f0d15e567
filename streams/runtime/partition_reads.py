"""Single reads of a partition, by a consumer of their own: where its log ends, and the keys of its last records."""

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from streams.settings import KafkaConnection

LAST_KEYS = 50
"""Records at the end of a changelog that tell whether it is that of a table: one key in common suffices."""

LAST_KEYS_TIMEOUT_MS = 10_000
"""How long they may take; a fetch from a broker in order takes some milliseconds."""


async def read_end(connection: KafkaConnection, tp: TP) -> int:
    """Return the end offset of a partition, open transactions included. Raises KafkaError."""
    async with AIOKafkaConsumer(**connection) as consumer:
        end: int = (await consumer.end_offsets([TopicPartition(*tp)]))[TopicPartition(*tp)]
    return end


async def read_last_keys(connection: KafkaConnection, tp: TP, last: int) -> list[bytes]:
    """Return the keys of some records at the end of a partition, whose last offset is `last`. Raises KafkaError."""
    if last < 0:
        return []
    partition = TopicPartition(*tp)
    async with AIOKafkaConsumer(**connection, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, max(0, last + 1 - LAST_KEYS))
        records = await consumer.getmany(partition, timeout_ms=LAST_KEYS_TIMEOUT_MS)
    return [record.key for record in records.get(partition, ())]
