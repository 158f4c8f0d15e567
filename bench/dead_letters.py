"""How many dead letters there are."""

from aiokafka import AIOKafkaConsumer, TopicPartition


async def dead_letters(bootstrap: str) -> int:
    """The number of records on the topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        partitions = [TopicPartition("memory.dead-letters", number) for number in range(4)]
        ends = await consumer.end_offsets(partitions)
        return int(sum(ends.values()))
    finally:
        await consumer.stop()
