"""Old turns lie in the archive and no longer in the log, and operators read both as one."""

from datetime import timedelta

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from operations.copy.kafka_source import open_logs
from schemas.messages.records import Record
from schemas.scopes import Scope
from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.logs import KafkaTurnsHistory
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.channels import input_channels
from streams.flow.background.archiving import ArchiveTurns
from streams.flow.turns_log import ArchivedTurns
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import group_id, topic_config, topics_with_prefix
from tests.builders.turns import as_bytes, turn_fields
from tests.fakes.clock import FakeClock
from tests.harnesses.archiving import ArchivingHarness
from tests.worlds.live.broker import RunningBroker

TURNS, HANDLED = 40, 30


async def read_turns(settings: Settings) -> list[Record]:
    """Read the turns as `migrate` and `backup` do."""
    found: list[Record] = []
    async with open_logs(settings) as logs:
        offset = 0
        while offset < TURNS:
            records, offset = await logs.read(("turns", 0), offset, 7)
            found += records
    return found


async def test_archived_turns_are_deleted_and_read_as_before(live_broker: RunningBroker, prefix: str) -> None:
    settings = Settings(broker=live_broker.bootstrap, topic_prefix=prefix, partitions=1)
    topics, harness = topics_with_prefix(prefix), ArchivingHarness()
    await ensure_topics(settings, {topic: topic_config(topics, topic) for topic in topics.all()})
    log = TopicPartition(topics.turns, 0)
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap) as producer:
        for number in range(TURNS):
            value = as_bytes(turn_fields(f"turn {number}", turn_id=f"t{number}"))
            await producer.send_and_wait(topics.turns, value, key=b"u1", partition=0, headers=[("app", b"x")])
    before = await read_turns(settings)
    for record in before[:HANDLED]:
        harness.store(record)
    kinds = input_channels(topics, Scope).turns.kinds
    archived = ArchivedTurns(topics.archive, kinds, 1, harness.memories, keeps_unknown=True)
    meters, history = Meters(), KafkaTurnsHistory(settings)
    publisher = KafkaPublisher(settings.kafka_connection, topics.replies, topics.dead_letters, meters)
    await publisher.start()
    clock = FakeClock()
    clock.forward(1000 * 365 * 24 * 3600)
    parts = (history, archived, publisher, topics.archive, clock, meters)
    async with AIOKafkaConsumer(
        bootstrap_servers=live_broker.bootstrap, group_id=group_id(settings), enable_auto_commit=False
    ) as consumer:
        consumer.assign([log])
        await consumer.commit({log: HANDLED})
        for _ in range(2):
            await ArchiveTurns(*parts, kept=timedelta(0)).move(0)
        assert await consumer.beginning_offsets([log]) == {log: HANDLED}
    assert await history.archived(0) == HANDLED
    await history.aclose()
    await publisher.stop()
    assert await read_turns(settings) == before
