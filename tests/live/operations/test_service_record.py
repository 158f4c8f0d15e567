"""What a deployment was made with is in Kafka: a worker with other settings is refused, whatever its disk holds."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from schemas.internal.service import ServiceRecord
from schemas.scope_models import deployed_scope
from streams.adapters.kafka.admin import ensure_topics
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.adapters.kafka.service_log import KafkaServiceLog
from streams.bootstrap.service_guard import ServiceLog, agree_on_service, service_record
from streams.flow.support.backoff import until_available
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import CHANGELOG
from tests.builders.scopes import AgentScope
from tests.fakes.service_log import FakeServiceLog
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import Deployment, Worker, eventually

MODEL = "tests.builders.scopes.AgentScope"


async def refusal(worker: Worker) -> str:
    """Return the log of a worker that must end by itself."""

    async def ended() -> bool:
        return not worker.is_running

    await eventually(ended, "a worker with other settings than the deployment's ends")
    return worker.log.read_text()


async def test_another_scope_model_is_refused_on_an_empty_data_directory(deployment: Deployment) -> None:
    first = await deployment.ready("first")
    async with deployment.client() as client:
        await client.remember("The kettle is blue.", turn_id="t-1")
        assert await first.terminate(30) == 0
        deployment.more["SCOPE_MODEL"] = MODEL
        refused = deployment.start("empty")
        log = await refusal(refused)
        assert "created with scopes of project_id, user_id, not agent_id, channel, project_id, user_id\n" in log
        assert "migrate to a new TOPIC_PREFIX and DATA_DIR" in log
        assert "Traceback" not in log
        assert await refused.terminate(1) == os.EX_CONFIG
        del deployment.more["SCOPE_MODEL"]
        await deployment.ready("empty")
        assert [hit.text for hit in (await client.retrieve("kettle")).hits] == ["The kettle is blue."]
        assert (await client.command("health"))["service"]["scope_fields"] == ["project_id", "user_id"]


async def test_another_partition_count_is_refused_with_both_values(deployment: Deployment) -> None:
    await (await deployment.ready("first")).terminate(30)
    deployment.partitions = 8
    log = await refusal(deployment.start("empty"))
    assert "MODESTREAM_PARTITIONS" in log
    assert "created with 4 partitions, not 8" in log
    assert "Traceback" not in log


async def agreement(bootstrap: str, prefix: str, **changed: Any) -> ServiceRecord | str:
    """Start a worker as far as the agreement. Return the record, or the reason of a refusal."""
    settings = Settings(_env_file=None, broker=f"kafka://{bootstrap}", topic_prefix=prefix, **changed)
    topics = {f"{prefix}service": CHANGELOG}
    meters = Meters()
    try:
        created = await until_available(lambda: ensure_topics(settings, topics), "kafka", meters)
    except ValueError as refused:
        return str(refused)
    publisher = KafkaPublisher(settings.kafka_connection, f"{prefix}replies", f"{prefix}dead-letters", Meters())
    await publisher.start()
    try:
        return await agree_on_service(service_record(settings), KafkaServiceLog(settings, publisher, created))
    except SystemExit as refused:
        return str(refused.code)
    finally:
        await publisher.stop()


async def agreements(bootstrap: str, prefix: str, *changes: dict[str, Any]) -> list[ServiceRecord | str]:
    """Start workers at once, each with these changes of the settings."""
    return await asyncio.gather(*(agreement(bootstrap, prefix, **changed) for changed in changes))


@pytest.mark.parametrize("changed", [{"scope_model": deployed_scope(AgentScope)}, {"partitions": 8}])
async def test_one_of_two_settings_counts_when_workers_start_at_once(
    live_broker: RunningBroker, prefix: str, changed: dict[str, Any]
) -> None:
    for number in range(5):
        first = await agreements(live_broker.bootstrap, f"{prefix}{number}.", {}, changed)
        assert sorted(type(one) is str for one in first) == [False, True], first
        again = await agreements(live_broker.bootstrap, f"{prefix}{number}.", {}, changed)
        assert [type(one) for one in again] == [type(one) for one in first]


async def test_workers_of_the_same_settings_may_start_at_once(live_broker: RunningBroker, prefix: str) -> None:
    first, *others = await agreements(live_broker.bootstrap, prefix, {}, {}, {}, {})
    assert isinstance(first, ServiceRecord)
    assert others == [first] * 3


@pytest.fixture
async def kafka_log(live_broker: RunningBroker, prefix: str) -> AsyncIterator[KafkaServiceLog]:
    """The log of a deployment whose topics exist."""
    settings = Settings(_env_file=None, broker=f"kafka://{live_broker.bootstrap}", topic_prefix=prefix)
    await ensure_topics(settings, {f"{prefix}service": CHANGELOG})
    publisher = KafkaPublisher(settings.kafka_connection, f"{prefix}replies", f"{prefix}dead-letters", Meters())
    await publisher.start()
    yield KafkaServiceLog(settings, publisher, ())
    await publisher.stop()


@pytest.fixture(params=["fake", "kafka"])
def log(request: pytest.FixtureRequest) -> ServiceLog:
    """The port over memory and over Kafka."""
    found: ServiceLog = FakeServiceLog() if request.param == "fake" else request.getfixturevalue("kafka_log")
    return found


async def test_log_has_every_acknowledged_value_in_order(log: ServiceLog) -> None:
    assert await log.values() == []
    for number in range(1, 6):
        await log.write(str(number).encode())
        assert await log.values() == [str(one).encode() for one in range(1, number + 1)]


async def test_log_ignores_other_keys_and_what_is_before_a_tombstone(
    kafka_log: KafkaServiceLog, live_broker: RunningBroker
) -> None:
    await kafka_log.write(b"1")
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap, acks="all") as producer:
        await producer.send_and_wait(kafka_log.topic, None, key=b"service", partition=0)
        await producer.send_and_wait(kafka_log.topic, b"2", key=b"another", partition=0)
    assert await kafka_log.values() == []
    await kafka_log.write(b"3")
    assert await kafka_log.values() == [b"3"]
