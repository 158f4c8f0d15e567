"""A client of the in-memory pipeline: the calls of `MemoryClient` over topics in memory, with no broker."""

import asyncio
import json
from typing import Any

from modestream_client import MemoryCalls, MemoryTimeout, Reply, Written
from modestream_client.answers import reply_of
from modestream_client.kafka.client import PRINCIPAL_HEADER, STREAM
from modestream_client.records import TURNS_TOPIC, invalid_read_after, with_identity
from modestream_client.transport import OWN_WRITES, HeadersOf, OnPartial, ReadAfter

from streams.wire.partitioning import partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

TIMEOUT_S = 20.0
"""The limit of a call without one."""


class InMemoryTransport:
    """Implements `Transport`; carries no deadline, as the pipeline has a clock of its own."""

    def __init__(self, pipeline: InMemoryPipeline, headers: HeadersOf | None = None) -> None:
        self._pipeline = pipeline
        self._boundary = pipeline.scope_model.boundary_fields
        self._headers_of = headers or dict[str, str]
        self._last_turn: dict[str, int] = {}

    async def open(self) -> None:
        """Do nothing: the pipeline runs."""

    async def close(self) -> None:
        """Do nothing."""

    async def partition_of(self, user_id: str) -> int:
        return partition_of(self._boundary.key_of(user_id).encode(), self._pipeline.partitions)

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | None:
        if read_after == OWN_WRITES:
            return self._last_turn.get(self._boundary.key_of(user_id))
        if not isinstance(read_after, str):
            return read_after
        place = Written.parse(read_after)
        if place.partition != await self.partition_of(user_id):
            raise invalid_read_after(f"{read_after!r} is not in the partition of this user")
        return place.offset

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        return await self._write(topic, record, principal)

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written]:
        """Write a record and wait for its reply; `on_partial` gets the partial ones at the end."""
        correlation = str(next(self._pipeline.numbers)).encode()
        names = self._pipeline.names
        written = await self._write(
            topic,
            record,
            principal,
            ("reply_to", names.replies.encode()),
            ("correlation_id", correlation),
            *(() if on_partial is None else (STREAM,)),
        )
        try:
            async with asyncio.timeout(timeout or TIMEOUT_S):
                await self._pipeline.topics.until(lambda: bool(self._pipeline.final_replies(correlation)))
        except TimeoutError:
            raise MemoryTimeout(f"no reply within {timeout} s") from None
        *partial, reply = self._pipeline.replies(correlation)
        for part in partial:
            assert on_partial is not None
            on_partial(part["seq"], part["delta"]["text"])
        return reply_of(json.dumps(reply).encode()), written

    async def _write(self, topic: str, record: Json, principal: str | None, *headers: tuple[str, bytes]) -> Written:
        boundary = self._boundary.key(record["scope"])
        if topic == TURNS_TOPIC:
            record = with_identity(record, round(self._pipeline.clock.now().timestamp() * 1000))
        caller: Any = () if principal is None else ((PRINCIPAL_HEADER, principal.encode()),)
        made = await self._pipeline.publish(
            self._pipeline.settings.topic_prefix + topic,
            record,
            key=boundary.encode(),
            headers=(*headers, *caller, *((name, value.encode()) for name, value in self._headers_of().items())),
        )
        if topic == TURNS_TOPIC:
            self._last_turn[boundary] = made.offset
        return Written(made.partition, made.offset)


def client_of(pipeline: InMemoryPipeline, **how: Any) -> MemoryCalls:
    """Return a client of the pipeline, of the user u1 unless `how` names another."""
    return MemoryCalls(InMemoryTransport(pipeline), **{"user_id": "u1", **how})
