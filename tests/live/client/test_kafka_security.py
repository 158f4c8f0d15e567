"""TLS and SASL: a client and a worker at a listener that asks for both."""

import asyncio
import json
import os
from pathlib import Path

import pytest
import uvloop
from aiokafka import AIOKafkaProducer, TopicPartition
from modestream_client import KafkaSecurity, MemoryClient, MemoryUnreachable
from modestream_client.kafka.own_clients import OwnConsumer
from modestream_client.kafka.security import connection_options

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import deployed
from tests.worlds.live.secured_listener import PASSWORD, USERNAME
from tests.worlds.live.stand_in import create_topics

CLOSING_S = 10.0
"""Limit of closing, far below an event loop's 30 s."""


def security(broker: RunningBroker, password: str = PASSWORD) -> KafkaSecurity:
    """Return what the secured listener asks for."""
    return KafkaSecurity(
        protocol="SASL_SSL", mechanism="PLAIN", username=USERNAME, password=password, ca_file=broker.secured.ca_file
    )


async def test_worker_and_client_log_in_over_tls(
    live_broker: RunningBroker, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    known = security(live_broker).model_dump(mode="json", exclude_none=True, exclude={"password"})
    setting = json.dumps({**known, "password_env": "KAFKA_PASSWORD"})
    with deployed(live_broker.secured.bootstrap, tmp_path, models, KAFKA_SECURITY=setting) as deployment:
        await deployment.ready()
        async with deployment.client(security=security(live_broker)) as memory:
            await memory.remember("The kettle is blue.")
            assert [hit.text for hit in (await memory.retrieve("kettle")).hits] == ["The kettle is blue."]
            assert await memory.forget(user=True) == 1


async def test_wrong_password_is_refused(live_broker: RunningBroker) -> None:
    with pytest.raises(MemoryUnreachable):
        async with MemoryClient(live_broker.secured.bootstrap, timeout=5, security=security(live_broker, "guessed")):
            pass


async def test_broker_with_an_unknown_certificate_is_not_trusted(live_broker: RunningBroker) -> None:
    untrusting = security(live_broker).model_copy(update={"ca_file": None})
    with pytest.raises(MemoryUnreachable):
        async with MemoryClient(live_broker.secured.bootstrap, timeout=5, security=untrusting):
            pass


def test_connections_over_tls_are_let_go_while_data_arrives(live_broker: RunningBroker, prefix: str) -> None:
    """As gateways do at a switch: event loops wait 30 s for the other side of each of them."""
    uvloop.run(read_and_stop(live_broker, f"{prefix}turns", prefix))


async def read_and_stop(broker: RunningBroker, topic: str, prefix: str) -> None:
    """Stop consumers in the middle of a large fetch, one after the other."""
    await create_topics(broker.bootstrap, prefix)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(40):
            await producer.send_and_wait(topic, os.urandom(1 << 19), partition=0)
    secured = connection_options(security(broker))
    for _ in range(5):
        consumer = OwnConsumer(bootstrap_servers=broker.secured.bootstrap, **secured, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.getone()
        async with asyncio.timeout(CLOSING_S):
            await consumer.stop()
