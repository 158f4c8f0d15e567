"""A stand-in for the service that answers requests on a real broker as a test configures it.

It stores no memories. It collects every record for the test, which can also reply itself, late or twice.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.partitioner import DefaultPartitioner
from modestream_client import MemoryClient

from tests.worlds.live.broker import RunningBroker

Json = dict[str, Any]
PARTITIONS = 4
SOON = 0.3
"""Timeout of calls without a reply, in seconds."""

TOPICS = ("turns", "retrieve", "commands", "consolidate", "replies")


@dataclass(frozen=True, slots=True)
class ReceivedRecord:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: dict[str, bytes]
    value: Json


def ok(result: Json, **more: Any) -> Json:
    return {"schema": "reply.v1", "status": "ok", "result": result, "warnings": [], **more}


def error(code: str, message: str, field: str | None = None) -> Json:
    return {"schema": "reply.v1", "status": "error", "error": {"code": code, "message": message, "field": field}}


def reply_by_contract(seen: ReceivedRecord) -> Sequence[Json]:
    """Reply as a healthy service: a turn's memory id is its content, and a query finds nothing."""
    if seen.topic == "turns":
        result = {"memory_id": seen.value["content"], "turn_id": seen.value["turn_id"] or "derived", "version": 1}
        return [ok({**result, "mode": "general", "mode_source": "fallback", "duplicate": False})]
    if seen.topic == "retrieve" and seen.value["schema"] != "command.v1":
        return [ok({"hits": [], "modes": ["general"], "strategy": "hybrid", "diagnostics": {}})]
    return [ok({"told": seen.value.get("command")})]


def silent(_: ReceivedRecord) -> Sequence[Json]:
    return []


def partition_of(key: str) -> int:
    partition: int = DefaultPartitioner()(key.encode(), list(range(PARTITIONS)), [])
    return partition


def finds(*users: str) -> Json:
    hits: list[Json] = [
        {
            "memory_id": f"m-{user}",
            "turn_id": "t",
            "conversation_id": "c",
            "scope": {"user_id": user, "project_id": "default"},
            "type": "episodic",
            "mode": "general",
            "mode_source": "fallback",
            "role": "user",
            "speaker": None,
            "text": "text",
            "occurred_at": "2026-03-01T09:30:00Z",
            "score": 0.5,
            "evidence": [],
            "version": 1,
            "embedding_status": "ready",
        }
        for user in users
    ]
    return ok({"hits": hits, "modes": ["general"], "strategy": "hybrid", "diagnostics": {"took_ms": 1}})


@dataclass
class StandIn:
    """A running stand-in. `behaviour` returns the replies to a record, in order."""

    prefix: str
    consumer: AIOKafkaConsumer
    producer: AIOKafkaProducer
    behaviour: Callable[[ReceivedRecord], Sequence[Json]] = reply_by_contract
    arrived: asyncio.Queue[ReceivedRecord] = field(default_factory=asyncio.Queue)

    async def serve(self) -> None:
        """Answer until cancelled."""
        async for record in self.consumer:
            topic = record.topic.removeprefix(self.prefix)
            place = (topic, record.partition, record.offset)
            seen = ReceivedRecord(*place, record.key, dict(record.headers), json.loads(record.value))
            for body in self.behaviour(seen):
                await self.reply(seen, body)
            self.arrived.put_nowait(seen)

    async def reply(self, seen: ReceivedRecord, body: Json) -> None:
        if "reply_to" in seen.headers:
            await self.producer.send_and_wait(
                seen.headers["reply_to"].decode(),
                json.dumps(body).encode(),
                key=seen.key,
                partition=int(seen.headers["reply_partition"]),
                headers=[("correlation_id", seen.headers["correlation_id"])],
            )

    async def next(self, topic: str) -> ReceivedRecord:
        while (seen := await self.arrived.get()).topic != topic:
            pass
        return seen


async def create_topics(bootstrap: str, prefix: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(prefix + topic, PARTITIONS, 1) for topic in TOPICS])
    finally:
        await admin.close()


@asynccontextmanager
async def standing_in(bootstrap: str, prefix: str) -> AsyncIterator[StandIn]:
    """Run a stand-in on its own topics, read from the beginning."""
    await create_topics(bootstrap, prefix)
    async with (
        AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest") as consumer,
        AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer,
    ):
        requests = [topic for topic in TOPICS if topic != "replies"]
        consumer.assign([TopicPartition(prefix + topic, number) for topic in requests for number in range(PARTITIONS)])
        stand_in = StandIn(prefix, consumer, producer)
        serving = asyncio.create_task(stand_in.serve())
        try:
            yield stand_in
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def connected(broker: RunningBroker, service: StandIn, **how: Any) -> AsyncIterator[MemoryClient]:
    async with MemoryClient(broker.bootstrap, **{"user_id": "u1", "topic_prefix": service.prefix, **how}) as client:
        yield client
