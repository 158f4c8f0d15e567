"""Run records in Kafka: read backwards from the end of a user's partition, as far as a list needs and may."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from modestream_client.runs import Run

from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from streams.adapters.kafka import logs
from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.logs import KafkaRunLog
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import topic_config, topics_with_prefix
from tests.worlds.live.broker import RunningBroker

RUNS_OF_EACH = 700
AT = datetime(2026, 3, 1, tzinfo=UTC)


def record(number: int) -> Run:
    return Run(run_id=f"retrieve-0-{number}", pipeline="retrieve", part="answer", at=AT, ms=1.0)


@pytest.fixture
async def settings(live_broker: RunningBroker, prefix: str, tmp_path: Path) -> AsyncIterator[Settings]:
    """A deployment with the runs of two users in partition 0, one after another."""
    settings = Settings(broker=live_broker.bootstrap, data_dir=tmp_path, topic_prefix=prefix, partitions=1)
    topics = topics_with_prefix(settings.topic_prefix)
    await ensure_topics(settings, {topics.runs: topic_config(topics, topics.runs)})
    publisher = KafkaPublisher(settings.kafka_connection, topics.replies, topics.dead_letters, Meters())
    await publisher.start()
    values = [record(number).model_dump_json(by_alias=True).encode() for number in range(RUNS_OF_EACH)]
    sent = [await publisher.send(Outgoing(topics.runs, user, value)) for value in values for user in (b"u1", b"u2")]
    await asyncio.gather(*sent)
    yield settings
    await publisher.stop()


async def test_the_newest_runs_of_a_user_are_read_from_the_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KafkaRunLog(settings)
    page = await log.newest(0, "u1", lambda _: True, 3)
    assert [run.run_id for run in page.runs] == [f"retrieve-0-{RUNS_OF_EACH - number}" for number in (1, 2, 3)]
    assert page.is_complete
    first = await log.newest(0, "u1", lambda run: run.run_id == "retrieve-0-0", 1)
    assert [run.run_id for run in first.runs] == ["retrieve-0-0"]
    monkeypatch.setattr(logs, "MAX_WINDOW_RECORDS", 1000)
    cut = await log.newest(0, "u1", lambda run: run.run_id == "retrieve-0-0", 1)
    assert cut.runs == []
    assert not cut.is_complete
    assert (await log.newest(0, "nobody", lambda _: True, 3)).runs == []
    with pytest.raises(Unavailable):
        await KafkaRunLog(settings.model_copy(update={"broker": "kafka://127.0.0.1:9"})).newest(0, "u1", bool, 1)
