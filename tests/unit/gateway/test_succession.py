"""A gateway follows a deployment to its successors; deployments that name each other end with an error."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Self, cast

import pytest
from fastapi import FastAPI
from modestream_client.answers import Reply
from modestream_client.failures import MemoryTimeout, MemoryUnreachable
from modestream_client.records import Written

from gateway.backend.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.backend.followers import Cluster
from gateway.backend.kafka import KafkaBackend, ServingBackend
from gateway.connection_settings import ConnectionSettings
from gateway.http.connections import Connections
from gateway.server import Served, serve
from schemas.internal.service import Successor


class KnownRecord:
    """What is known of a deployment, told by a test: it serves until `replace` names its successor."""

    conflict: str | None = None

    def __init__(self, successor: Successor | None = None) -> None:
        self.successor = successor
        self.pause = asyncio.Event()
        self.decided = asyncio.Event()
        if successor is not None:
            self.pause.set()
            self.decided.set()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        yield

    async def until_ended(self) -> None:
        await self.pause.wait()

    async def until_decided(self) -> None:
        await self.decided.wait()

    def replace(self, successor: Successor) -> None:
        self.successor = successor
        self.decided.set()


class NamedWire:
    """A wire that answers with the prefix of its deployment."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.answer = asyncio.Event()
        self.answer.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def request(self, _topic: str, _value: object, **_: object) -> tuple[Reply, Written]:
        """Answer when the test says so."""
        await self.answer.wait()
        return Reply({"prefix": self.prefix}), Written(0, 0)


def serving(prefix: str) -> Successor:
    return Successor(state="serving", topic_prefix=prefix)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


async def test_gateway_ends_where_deployments_name_each_other(
    listening: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    def at(successor: Successor | None) -> Served:
        assert successor is not None
        return served(successor.topic_prefix)

    def served(prefix: str) -> Served:
        record = KnownRecord(serving("two." if prefix == "one." else "one."))
        return Served(
            app=FastAPI(),
            cluster=Cluster("here:9092", prefix),
            record=cast("DeploymentRecord", record),
            connections=Connections(),
            at=at,
        )

    async with asyncio.timeout(30):
        assert await serve(served("one."), listening) == os.EX_CONFIG
    assert "one. to two. to one." in caplog.text


def test_the_same_prefix_on_another_broker_is_another_deployment() -> None:
    succession = Succession(Cluster("here:9092", "memory."))
    succession.follow(Cluster("there:9092", "memory."))
    with pytest.raises(CircularSuccession, match=r"memory\. to memory\. to memory\."):
        succession.follow(Cluster("here:9092", "memory."))


class Deployments:
    """Records and wires by prefix, made as they are followed."""

    def __init__(self) -> None:
        self.records: dict[str, KnownRecord] = {}
        self.wires: dict[str, NamedWire] = {}

    def connect(self, settings: ConnectionSettings) -> tuple[DeploymentRecord, KafkaBackend]:
        prefix = settings.topic_prefix
        self.records[prefix] = self.records.get(prefix) or KnownRecord()
        self.wires[prefix] = NamedWire(prefix)
        return cast("DeploymentRecord", self.records[prefix]), cast("KafkaBackend", self.wires[prefix])

    def wire(self) -> ServingBackend:
        return ServingBackend(ConnectionSettings(topic_prefix="one.", _env_file=None), self.connect)


async def ask(wire: ServingBackend, timeout: float = 20) -> str:
    reply, _ = await wire.request("retrieve", {}, principal=None, timeout=timeout)
    return str(reply.result["prefix"])


async def test_calls_wait_out_the_pause_and_are_answered_by_the_successor() -> None:
    deployments = Deployments()
    async with deployments.wire() as wire:
        assert await ask(wire) == "one."
        deployments.wires["one."].answer.clear()
        under_way = asyncio.create_task(ask(wire))
        await asyncio.sleep(0)
        deployments.records["one."].pause.set()
        for _ in range(10):
            await asyncio.sleep(0)
        waiting = asyncio.create_task(ask(wire))
        with pytest.raises(MemoryTimeout) as late:
            await ask(wire, timeout=0)
        assert not late.value.is_written
        deployments.wires["one."].answer.set()
        assert await under_way == "one."
        deployments.records["one."].replace(serving("two."))
        assert await waiting == "two."


async def test_calls_fail_where_deployments_name_each_other() -> None:
    deployments = Deployments()
    deployments.records = {"one.": KnownRecord(serving("two.")), "two.": KnownRecord(serving("one."))}
    async with deployments.wire() as wire:
        assert wire._running is not None
        await asyncio.wait({wire._running})
        with pytest.raises(MemoryUnreachable, match="name each other"):
            await ask(wire)
