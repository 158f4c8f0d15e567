"""What all topics that others write to have in common: admission, moving, replies, errors and dead letters.

A record comes in; exactly one of these happens: it is moved to its partition, dropped because nobody waits any
more, refused with an error reply or a dead letter, or handled and answered. `begin` returns what must be awaited
before the record may be acknowledged. A bad record costs nothing but itself.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import structlog

from agents.commands.admit import Admit
from agents.ports.clock import Clock
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.decoding import decode
from schemas.failures import Rejected, Unavailable
from schemas.policies import Permission
from schemas.records import Outgoing, Record
from schemas.replies import ReplyAddress, SuccessReply, encode_error
from streams.flow.support.awaiting import await_all, no_writes
from streams.flow.support.publisher import Publisher
from streams.observability.metrics import Meters
from streams.topics import MAX_OUTPUT_BYTES
from streams.wire.dead_letters import dead_letter
from streams.wire.partitioning import partition_of
from streams.wire.relocation import may_move, original_record, relocate
from streams.wire.reply_address import deadline_ms, parse_reply_address, with_reply_partition

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """What handling a request gave: its answer, the events that must follow, and what else must be awaited.

    Without an answer one of these events leads to it, which carries the request's headers.
    """

    answer: SuccessReply | None
    events: Sequence[Outgoing] = ()
    pending_writes: Sequence[Awaitable[object]] = ()


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """How a request wants to be answered; `deadline_ms` is milliseconds since the epoch."""

    address: ReplyAddress | None = None
    deadline_ms: int | None = None


MAX_REPLY_BYTES = MAX_OUTPUT_BYTES - 64 * 1024
"""Bytes of a reply: what a record of the reply topics may have, with room for key and headers. A hundred turns of the
longest content may have more."""

Handler = Callable[[Any, Record, ReplyOptions], Awaitable[HandlerResult]]
"""Handles one valid message of a channel's kinds. May raise Rejected, or Unavailable for a later try."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One input topic: what it carries and how it is served."""

    topic: str
    kinds: Mapping[str, type[Any]]
    act: Permission | None
    """What its senders do; None where only we write."""
    keeps_rejected: bool = False
    """Whether a rejected record is a dead letter even if its sender got the error: turns are."""
    outlives_deadline: bool = False
    """Whether a record past its deadline is handled all the same, without a reply: turns are."""
    concurrent: bool = False
    """Whether several are handled at the same time: those that change nothing are."""


@dataclass(slots=True)
class RequestPipeline:
    """Serves one input topic."""

    channel: Channel
    handle: Handler
    partitions: int
    replies: str
    dead_letters: str
    publisher: Publisher
    clock: Clock
    meters: Meters
    admit: Admit

    async def begin(self, record: Record) -> Awaitable[object]:
        """Take one record as far as order demands."""
        address = None
        try:
            address = parse_reply_address(record, self.replies)
            address = with_reply_partition(address, record)
            deadline = deadline_ms(record)
            if self._expired(deadline):
                self.meters.expired(record.topic)
                if not self.channel.outlives_deadline:
                    return no_writes()
                address = deadline = None
            return await self._admit(record, ReplyOptions(address, deadline))
        except Rejected as error:
            return await self._refuse(record, address, error)

    async def _admit(self, record: Record, asked: ReplyOptions) -> Awaitable[object]:
        message = decode(record.value, self.channel.kinds)
        if elsewhere := self._elsewhere(record, message.scope.boundary.encode()):
            self.meters.moved(record.topic)
            return await self.publisher.send(elsewhere)
        if self.channel.act is not None:
            message = self.admit.admit(message, self.channel.act, _principal(record))
        if self.channel.concurrent:
            return self._answer(message, record, asked)
        return await self._carry_out(message, record, asked)

    def _expired(self, deadline: int | None) -> bool:
        return deadline is not None and self.clock.now().timestamp() * 1000 > deadline

    def _elsewhere(self, record: Record, key: bytes) -> Outgoing | None:
        """The record as it must be written where it belongs, or None where it is there.

        Moving is bounded: a record that was moved and is still elsewhere may mean that the partition counts differ.
        """
        partition = partition_of(key, self.partitions)
        if partition == record.partition:
            return None
        if not may_move(record):
            message = (
                f"moved too often; it is in {record.partition}, and its key belongs to {partition} of {self.partitions}"
            )
            raise Rejected("internal", message)
        return relocate(record, key, partition)

    async def _answer(self, message: Any, record: Record, asked: ReplyOptions) -> None:
        try:
            finishing = await self._carry_out(message, record, asked)
        except Rejected as error:
            finishing = await self._refuse(record, asked.address, error)
        await finishing

    async def _carry_out(self, message: Any, record: Record, asked: ReplyOptions) -> Awaitable[object]:
        handled, answer = await self._handled(message, record, asked)
        self.meters.handled(record.topic)
        sent = [*handled.pending_writes, *[await self.publisher.send(event) for event in handled.events]]
        replied = [] if answer is None else await self._reply(record, asked.address, answer)
        return await_all([*sent, *replied])

    async def _handled(self, message: Any, record: Record, asked: ReplyOptions) -> tuple[HandlerResult, bytes | None]:
        """What handling gave, and its answer as it is written: one that can't be is a defect of handling."""
        try:
            handled = await self.handle(message, record, asked)
            return handled, None if handled.answer is None else _fitting(handled.answer.encode())
        except Rejected:
            raise
        except Unavailable as problem:
            if self.channel.outlives_deadline:
                # Nothing that was accepted may be lost: it ends the run, and is delivered again after a new start.
                raise
            raise Rejected("unavailable", f"{problem}; the same request may succeed later") from problem
        except Exception as problem:
            log.exception("handling failed", **log_context(record))
            raise Rejected("internal", f"{type(problem).__name__}; the worker's log has the rest") from problem

    async def _refuse(self, record: Record, address: ReplyAddress | None, error: Rejected) -> Awaitable[object]:
        self.meters.rejected(record.topic, error.code)
        log.info("record refused", code=error.code, field=error.field, **log_context(record))
        sent = await self._reply(record, address, encode_error(error))
        if self.channel.keeps_rejected or not sent:
            letter = dead_letter(self.dead_letters, original_record(record), error, self.clock.now())
            sent.append(await self.publisher.send(letter))
        return await_all(sent)

    async def _reply(self, record: Record, address: ReplyAddress | None, value: bytes) -> list[Awaitable[object]]:
        if address is None:
            return []
        headers = () if address.correlation is None else (address.correlation,)
        out = Outgoing(address.topic, original_record(record).key, value, headers, address.partition)
        return [await self.publisher.reply(out)]


def _fitting(reply: bytes) -> bytes:
    """The reply, or in place of one that Kafka would not take the error that says so: what was asked is done."""
    if len(reply) <= MAX_REPLY_BYTES:
        return reply
    message = f"the answer has {len(reply)} bytes, a record {MAX_REPLY_BYTES} at most; ask for fewer hits or tokens"
    return encode_error(Rejected("too_large", message))


def _principal(record: Record) -> str | None:
    """Who the record says it is from. Kafka tells a consumer nothing of who wrote a record."""
    said = record.header(PRINCIPAL_HEADER)
    return None if said is None else said.decode(errors="replace")


def log_context(record: Record) -> dict[str, object]:
    """What a log line says of a record; never its text."""
    key = None if record.key is None else f"{crc32(record.key):08x}"
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset, "key_hash": key}
