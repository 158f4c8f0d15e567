"""The readable end of a partition at a consumer's isolation level.

Records of an open transaction are hidden from a `read_committed` consumer, with all later ones of the partition. The
end of a transaction is a control record: it takes an offset, and no consumer ever returns it.
"""

from aiokafka import AIOKafkaConsumer, TopicPartition

READ_COMMITTED = "read_committed"


def set_isolation_level(consumer: AIOKafkaConsumer, level: str) -> None:
    """Set the isolation level of a consumer that is not started."""
    consumer._isolation_level = level  # noqa: SLF001 - Faust creates its consumer without a setting for it


def readable_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int | None:
    """Return the offset after the last readable record, as of the last fetch; None before it."""
    if consumer._isolation_level == READ_COMMITTED:  # noqa: SLF001
        stable: int | None = consumer.last_stable_offset(partition)
        if stable is None or stable >= 0:
            return stable
    end: int | None = consumer.highwater(partition)
    return end
