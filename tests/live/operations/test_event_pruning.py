"""Handled events are deleted from Kafka's log; unhandled ones, new ones and what clients wrote stay."""

from datetime import timedelta

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.topic_maintenance import PruneEvents
from streams.settings import Settings
from streams.topics import group_id, topic_config, topics_with_prefix
from tests.worlds.live.broker import RunningBroker

NOW, DAY = timedelta(0), timedelta(days=1)


async def test_only_handled_events_are_deleted(live_broker: RunningBroker, prefix: str) -> None:
    settings = Settings(broker=live_broker.bootstrap, topic_prefix=prefix, partitions=1)
    topics = topics_with_prefix(prefix)
    written = (topics.remembered, topics.turns, topics.learned)
    await ensure_topics(settings, {topic: topic_config(topics, topic) for topic in written})
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap) as producer:
        for topic in written * 5:
            await producer.send_and_wait(topic, b"text", partition=0)
    remembered, turns, learned = (TopicPartition(topic, 0) for topic in written)
    async with AIOKafkaConsumer(
        bootstrap_servers=live_broker.bootstrap, group_id=group_id(settings), enable_auto_commit=False
    ) as consumer:
        consumer.assign([remembered, turns])
        await consumer.commit({remembered: 3, turns: 5})
        await PruneEvents(settings, DAY).prune()
        assert set((await consumer.beginning_offsets([remembered, turns, learned])).values()) == {0}
        await PruneEvents(settings, NOW).prune()
        begins = await consumer.beginning_offsets([remembered, turns, learned])
    assert begins == {remembered: 3, turns: 0, learned: 0}
