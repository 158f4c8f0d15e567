"""Which deployment a topic prefix names: `successor.v1` in the topic `service` of the deployment.

An operator's `migrate --switch` writes it. Guaranteed: where the topic can't be read, or there is none, as for a client
without that permission, the prefix names what it says, and nothing fails for it.
"""

import asyncio
import time
from contextlib import suppress
from typing import Literal, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError
from pydantic import BaseModel, ValidationError

from modestream_client.kafka.security import KafkaSecurity, connection_options

SERVICE_TOPIC = "service"
SERVICE_PARTITION = 0
SUCCESSOR_KEY = b"successor"

MAX_PAUSE_S = 60.0
"""Seconds that a pause lasts at most from its record on; then the former deployment serves again."""

FETCH_WAIT_MS = 5000
"""How long the broker holds a fetch without a record: a new one is answered at once."""

READ_TIMEOUT_S = 10.0
"""Limit of the first read, and of disconnecting."""


class DeploymentAddress(NamedTuple):
    """A deployment: Kafka's address, and the prefix of its topics."""

    bootstrap: str
    topic_prefix: str


class Successor(BaseModel, frozen=True):
    """The deployment that replaces another one; `broker` is None on the same broker."""

    state: Literal["pausing", "serving", "withdrawn", "dropped"]
    topic_prefix: str
    broker: str | None = None

    @property
    def serves(self) -> bool:
        """True if clients send to it."""
        return self.state in ("serving", "dropped")

    def address(self, former: DeploymentAddress) -> DeploymentAddress:
        """Return its address, on the broker of the former one unless another is named."""
        named = None if self.broker is None else self.broker.replace("kafka://", "").replace(";", ",")
        return DeploymentAddress(named or former.bootstrap, self.topic_prefix)


class SuccessorNotice(NamedTuple):
    """What is written of a successor, and until when it pauses the clients, by the monotonic clock."""

    successor: Successor
    pauses_until: float

    @classmethod
    def of(cls, record: ConsumerRecord) -> Self | None:
        """Return what a record says; None for one of something else, or of a later release."""
        if record.key != SUCCESSOR_KEY:
            return None
        with suppress(ValidationError):
            successor = Successor.model_validate_json(record.value or b"null")
            # By the record's own time: one of a switch that was killed an hour ago pauses nothing.
            left_s = MAX_PAUSE_S - max(0.0, time.time() - record.timestamp / 1000)
            return cls(successor, time.monotonic() + left_s if successor.state == "pausing" else 0.0)
        return None


class SuccessorWatch:
    """Reads the topic of one deployment; `last` is what it says at present, None if nothing."""

    def __init__(self, address: DeploymentAddress, security: KafkaSecurity | None) -> None:
        self._topic = address.topic_prefix + SERVICE_TOPIC
        self._partition = TopicPartition(self._topic, SERVICE_PARTITION)
        self._bootstrap, self._security = address.bootstrap, security
        self._consumer: AIOKafkaConsumer | None = None
        self.last: SuccessorNotice | None = None

    async def open(self) -> None:
        """Read what is there. Never raises for Kafka: what can't be read says nothing."""
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            **connection_options(self._security),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                await self._consumer.start()
                await self._read_to_end(self._consumer)
        except (KafkaError, OSError):
            await self.close()

    async def next(self) -> SuccessorNotice | None:
        """Wait for the next notice; None if the topic can't be read any more."""
        while self._consumer is not None:
            try:
                notice = SuccessorNotice.of(await self._consumer.getone())
            except (ConsumerStoppedError, KafkaError):
                return None
            if notice is not None:
                self.last = notice
                return notice
        return None

    async def close(self) -> None:
        """Disconnect."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            # In a task of its own: after a failed fetch aiokafka's `stop` may raise a CancelledError of its own.
            stopping = asyncio.create_task(consumer.stop())
            await asyncio.wait({stopping}, timeout=READ_TIMEOUT_S)

    async def _read_to_end(self, consumer: AIOKafkaConsumer) -> None:
        # Names all topics, and asks for none: a broker may create a topic that is asked for.
        if self._topic not in await consumer.topics():
            await self.close()
            return
        consumer.assign([self._partition])
        end = (await consumer.end_offsets([self._partition]))[self._partition]
        while await consumer.position(self._partition) < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                self.last = next(filter(None, map(SuccessorNotice.of, reversed(records))), self.last)
