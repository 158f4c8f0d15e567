"""What a deployment was made with is in Kafka: a worker with other settings is refused, whatever its disk holds."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from schemas.internal.service import Release, ServiceRecord
from schemas.scope_models import deployed_scope
from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.deployment_log import KafkaDeploymentLog
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.backoff import until_available
from streams.bootstrap.deployment_records import agree_on_service, service_record
from streams.deployment_log import DeploymentLog, readable
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import CHANGELOG
from tests.builders.scopes import AgentScope
from tests.fakes.deployment_log import FakeDeploymentLog
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import Deployment, Worker, eventually

MODEL = "tests.builders.scopes.AgentScope"


async def refusal(worker: Worker) -> str:
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
    assert "created with 2 partitions, not 8" in log
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
        log = KafkaDeploymentLog(settings, publisher, meters)
        log.is_new = log.topic in created
        return await agree_on_service(service_record(settings), log)
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
        assert sorted(type(outcome) is str for outcome in first) == [False, True], first
        again = await agreements(live_broker.bootstrap, f"{prefix}{number}.", {}, changed)
        assert [type(outcome) for outcome in again] == [type(outcome) for outcome in first]


async def test_workers_of_the_same_settings_may_start_at_once(live_broker: RunningBroker, prefix: str) -> None:
    first, *others = await agreements(live_broker.bootstrap, prefix, {}, {}, {}, {})
    assert isinstance(first, ServiceRecord)
    assert others == [first] * 3


@pytest.fixture
async def kafka_log(live_broker: RunningBroker, prefix: str) -> AsyncIterator[KafkaDeploymentLog]:
    """The log of a deployment whose topic exists."""
    settings = Settings(_env_file=None, broker=f"kafka://{live_broker.bootstrap}", topic_prefix=prefix)
    await ensure_topics(settings, {f"{prefix}service": CHANGELOG})
    publisher = KafkaPublisher(settings.kafka_connection, f"{prefix}replies", f"{prefix}dead-letters", Meters())
    await publisher.start()
    yield KafkaDeploymentLog(settings, publisher, Meters())
    await publisher.stop()


@pytest.fixture(params=["fake", "kafka"])
def log(request: pytest.FixtureRequest) -> DeploymentLog:
    """The port over memory and over Kafka."""
    logs: DeploymentLog = FakeDeploymentLog() if request.param == "fake" else request.getfixturevalue("kafka_log")
    return logs


async def numbers(log: DeploymentLog, key: bytes = b"a") -> list[int]:
    return [record.number for record in readable((await log.values()).get(key, ()), Release)]


async def test_log_has_every_acknowledged_value_in_order(log: DeploymentLog) -> None:
    assert await numbers(log) == []
    for number in range(1, 6):
        await log.write(b"a", Release(number=number, oldest=1))
        assert await numbers(log) == [*range(1, number + 1)]


async def test_log_has_the_values_of_each_key_since_its_tombstone(
    kafka_log: KafkaDeploymentLog, live_broker: RunningBroker
) -> None:
    await kafka_log.write(b"a", Release(number=1, oldest=1))
    await kafka_log.write(b"b", Release(number=2, oldest=1))
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap, acks="all") as producer:
        await producer.send_and_wait(kafka_log.topic, None, key=b"a", partition=0)
    assert await numbers(kafka_log) == []
    await kafka_log.write(b"a", Release(number=3, oldest=1))
    assert await numbers(kafka_log) == [3]
    assert await numbers(kafka_log, b"b") == [2]
