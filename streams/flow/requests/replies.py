"""Replies, error replies and dead letters of the records that a worker reads."""

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import structlog

from agents.ports.clock import Clock
from schemas.failures import Poison, Rejected
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyAddress, encode_error
from streams.flow.publisher import Publisher
from streams.observability.metrics import Meters
from streams.observability.tracing import mark_refused
from streams.topics import MAX_OUTPUT_BYTES
from streams.wire.dead_letters import dead_letter
from streams.wire.partitioning import original_record
from streams.wire.record_size import size_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Replies:
    """Writes replies and dead letters. Every method returns what to await before the record is acknowledged."""

    publisher: Publisher
    dead_letters_topic: str
    clock: Clock
    meters: Meters

    async def reply(self, record: Record, address: ReplyAddress | None, value: bytes) -> list[Awaitable[object]]:
        """Reply to a request under the key it was sent with; nothing without an address."""
        if address is None:
            return []
        headers = () if address.correlation is None else (address.correlation,)
        out = Outgoing(address.topic, original_record(record).key, b"", headers, address.partition)
        return [await self.publisher.reply(replace(out, value=limit_reply(value, MAX_OUTPUT_BYTES - size_of(out))))]

    async def refuse(
        self, record: Record, address: ReplyAddress | None, error: Rejected, *, keeps_rejected: bool
    ) -> list[Awaitable[object]]:
        """Reply with an error; write a dead letter without an address, of poison, and always with `keeps_rejected`."""
        self.meters.rejected(record.topic, error.code)
        mark_refused(error.code)
        log.info("record refused", code=error.code, field=error.field, **log_context(record))
        sent = await self.reply(record, address, encode_error(error))
        if keeps_rejected or not sent or isinstance(error, Poison):
            sent.append(await self.dead_letter(original_record(record), error))
        return sent

    async def dead_letter(self, record: Record, error: Rejected) -> Awaitable[object]:
        """Write a record to the dead letters, with the reason in its headers."""
        return await self.publisher.send(dead_letter(self.dead_letters_topic, record, error, self.clock.now()))


def limit_reply(reply: bytes, room: int) -> bytes:
    """Return the reply, or a `too_large` error if it has more bytes than `room`; the request is done in any case.

    The error always fits: key and header of a request have at most half of the bytes of a reply's record.
    """
    if len(reply) <= room:
        return reply
    message = f"the answer has {len(reply)} bytes, and its record room for {room}; ask for fewer hits or tokens"
    return encode_error(Rejected("too_large", message))


def log_context(record: Record) -> dict[str, Any]:
    """Return the fields of a log line about a record; never its text."""
    key = None if record.key is None else f"{crc32(record.key):08x}"
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset, "key_hash": key}
