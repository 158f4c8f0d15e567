"""Which deployment a topic prefix names: `successor.v1` in the topic `service` of the deployment.

An operator's `migrate --switch` writes it. Guaranteed: where there is no such topic, or it can't be read, as for a
client without that permission, the prefix names what it says, and nothing fails for it. After an outage it is read on.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError, TopicAuthorizationFailedError
from pydantic import ValidationError

from modestream_client.kafka.security import KafkaSecurity, connection_options
from modestream_client.successor import PAUSE_S, SUCCESSOR_KEY, Successor

log = logging.getLogger(__name__)

SERVICE_TOPIC = "service"
SERVICE_PARTITION = 0

FETCH_WAIT_MS = 5000
"""How long the broker holds a fetch without a record: a new one is answered at once."""

READ_TIMEOUT_S = 10.0
"""Limit of the first read, and of disconnecting, unless another is given."""

RETRY_INTERVAL_S = 1.0
"""Between two attempts to read the topic."""


class DeploymentAddress(NamedTuple):
    """A deployment: Kafka's address, and the prefix of its topics."""

    bootstrap: str
    topic_prefix: str


def address_of(successor: Successor, former: DeploymentAddress) -> DeploymentAddress:
    """Return a successor's address, on the broker of the former deployment unless another is named."""
    named = None if successor.broker is None else successor.broker.replace("kafka://", "").replace(";", ",")
    return DeploymentAddress(named or former.bootstrap, successor.topic_prefix)


class SuccessorNotice(NamedTuple):
    """What is written of a successor, and until when it pauses the clients, by the monotonic clock."""

    successor: Successor
    pauses_until: float

    @classmethod
    def of(cls, record: ConsumerRecord, *, is_new: bool = False) -> Self | None:
        """Return what a record says; None for one of something else, or of a later release.

        `is_new`: written just now, whatever the own clock says.
        """
        if record.key != SUCCESSOR_KEY:
            return None
        with suppress(ValidationError):
            successor = Successor.model_validate_json(record.value or b"null")
            # By the record's own time: one of a switch that was killed an hour ago pauses nothing.
            age_s = 0.0 if is_new else max(0.0, time.time() - record.timestamp / 1000)
            return cls(successor, time.monotonic() + PAUSE_S - age_s if successor.state == "pausing" else 0.0)
        return None


class SuccessorWatch:
    """Reads the topic of one deployment; `last` is what it says at present, None if nothing."""

    def __init__(
        self,
        address: DeploymentAddress,
        security: KafkaSecurity | None,
        timeout_s: float = READ_TIMEOUT_S,
        make: Callable[..., AIOKafkaConsumer] = AIOKafkaConsumer,
    ) -> None:
        """`timeout_s` limits the first read, and disconnecting."""
        self._timeout_s = timeout_s
        self._make = make
        self._topic = address.topic_prefix + SERVICE_TOPIC
        self._partition = TopicPartition(self._topic, SERVICE_PARTITION)
        self._bootstrap, self._security = address.bootstrap, security
        self._consumer: AIOKafkaConsumer | None = None
        self._next_offset = 0
        self._is_over = False
        self._is_failing = False
        self.last: SuccessorNotice | None = None

    async def open(self) -> None:
        """Read what is there. Never raises for Kafka: what can't be read says nothing yet."""
        self._consumer = self._make(
            bootstrap_servers=self._bootstrap,
            **connection_options(self._security),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._consumer.start()
                await self._read_to_end(self._consumer)
            self._is_failing = False
        except (KafkaError, OSError) as problem:
            await self._disconnect_after(problem)
        except BaseException:
            await self._disconnect()
            raise

    async def next(self) -> SuccessorNotice | None:
        """Wait for the next notice, over outages; None without the topic or its permission, and once closed."""
        before = self.last
        while self.last is before and not self._is_over:
            if self._consumer is None:
                await asyncio.sleep(RETRY_INTERVAL_S)
                await self.open()
            else:
                await self._read_one(self._consumer)
        return None if self.last is before else self.last

    async def close(self) -> None:
        """Disconnect; nothing is read any more."""
        self._is_over = True
        await self._disconnect()

    async def _read_one(self, consumer: AIOKafkaConsumer) -> None:
        try:
            record = await consumer.getone()
        except ConsumerStoppedError:
            self._consumer = None
        except (KafkaError, OSError) as problem:
            await self._disconnect_after(problem)
        else:
            self._next_offset = record.offset + 1
            self.last = SuccessorNotice.of(record, is_new=True) or self.last

    async def _disconnect_after(self, problem: Exception) -> None:
        """Without permission for good; else until the next attempt, with one line in the log for all of them."""
        self._is_over = self._is_over or isinstance(problem, TopicAuthorizationFailedError)
        if not self._is_over and not self._is_failing:
            log.warning("can't read %s, trying again: %s", self._topic, problem or type(problem).__name__)
            self._is_failing = True
        await self._disconnect()

    async def _disconnect(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            # In a task of its own: after a failed fetch aiokafka's `stop` may raise a CancelledError of its own.
            stopping = asyncio.create_task(consumer.stop())
            await asyncio.wait({stopping}, timeout=self._timeout_s)

    async def _read_to_end(self, consumer: AIOKafkaConsumer) -> None:
        # Names all topics, and asks for none: a broker may create a topic that is asked for.
        if self._topic not in await consumer.topics():
            await self.close()
            return
        consumer.assign([self._partition])
        consumer.seek(self._partition, self._next_offset)
        end = (await consumer.end_offsets([self._partition]))[self._partition]
        while await consumer.position(self._partition) < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                self._next_offset = records[-1].offset + 1
                self.last = next(filter(None, map(SuccessorNotice.of, reversed(records))), self.last)
