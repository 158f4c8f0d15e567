"""The request pipeline: every record of an input topic is relocated, expired, refused, or handled and answered.

A record enters `begin` in the order of its partition. The returned awaitable is done when replies, events and writes
are stored; then the record may be acknowledged. An invalid record costs its sender an error and delays no other one.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from agents.commands.admit import Admit
from agents.ports.clock import SteadyClock
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.failures import Poison, Rejected, Unavailable
from schemas.messages.decoding import MAX_VALUES, count_values, decode
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyAddress
from streams.backoff import until_available
from streams.flow.death_counts import DeathCounts
from streams.flow.publisher import await_all, no_writes
from streams.flow.requests.channel import Channel, Handler, Replies, ReplyOptions, log_context, rejection_of
from streams.flow.runs.recorder import NO_RUN, RunNotes, RunRecorder
from streams.topics import MAX_INPUT_BYTES
from streams.wire.dead_letters import is_filler, size_of
from streams.wire.partitioning import may_move, partition_of, relocate
from streams.wire.reply_address import deadline_ms, parse_reply_address, with_reply_partition

# Admission of a record: reply address, deadline, decoding, partition, authorisation.
#
# A record enters; it leaves admitted with its message, relocated to the partition of its key, or expired. Raises
# Rejected for everything else.

MAX_HEADERS = 1000
"""Headers of a record: each is looked at several times, and 8 MiB could be three million."""

MAX_INLINE_BYTES = 64 * 1024
"""A longer value is decoded in a thread: decoding can take 0.1 s, and the event loop goes on between its steps.
That of a record with deaths is not: its next death is not counted for one that the event loop runs meanwhile."""

MAX_WAIT_MS = 15 * 60 * 1000
"""The longest time that a caller is taken to wait: beyond it, the timestamp is that of an event, or none."""


@dataclass(frozen=True, slots=True)
class Admission:
    channel: Channel
    admit: Admit
    partitions: int
    replies_topic: str
    clock: SteadyClock
    deaths: DeathCounts = field(default_factory=DeathCounts)

    def reply_address(self, record: Record) -> ReplyAddress | None:
        """Read the topic of the reply. Raises Rejected `reply_topic_refused`."""
        return parse_reply_address(_with_first_headers(record), self.replies_topic)

    def reply_options(self, record: Record, address: ReplyAddress | None) -> ReplyOptions:
        """Read the partition and the deadline of the reply. Raises Rejected, which goes to the address itself."""
        record = _with_first_headers(record)
        deadline = deadline_ms(record)
        return ReplyOptions(with_reply_partition(address, record), deadline, _waits_until_s(record, deadline))

    def is_expired(self, options: ReplyOptions) -> bool:
        return options.is_expired(self.clock)

    async def message(self, record: Record) -> Any:
        """Decode the record. Raises Rejected with the code of the contract, or Poison before it is looked at."""
        self.deaths.refuse_poison()
        if len(record.headers) > MAX_HEADERS:
            message = f"the record has {len(record.headers)} headers, and may have {MAX_HEADERS}"
            raise Rejected("too_large", message, "headers")
        if record.value is None or len(record.value) <= MAX_INLINE_BYTES:
            return decode(record.value, self.channel.kinds)
        if not self.deaths.may_use_thread():
            return self._decode_large(record.value)
        return await asyncio.to_thread(self._decode_in_thread, record.value, self.deaths.counted)

    def _decode_in_thread(self, value: bytes, name: bytes) -> Any:
        with self.deaths.in_thread(name):
            return self._decode_large(value)

    def _decode_large(self, value: bytes) -> Any:
        # The worker's own records hold what was counted when it came in, and a few values more.
        is_public = self.channel.act is not None
        # Each counted mark is a byte.
        if is_public and len(value) > MAX_VALUES and count_values(value) > MAX_VALUES:
            raise Rejected(
                "too_large", f"the record has more than {MAX_VALUES} values; split what it says into several"
            )
        return decode(value, self.channel.kinds)

    def relocated(self, record: Record, key: bytes) -> Outgoing | None:
        """Return the record for the partition of its key, or None if it is there.

        Raises Rejected `too_large` for a record that does not fit with one header more.
        Relocation is bounded: a record that is still misplaced afterwards may mean that partition counts differ.
        """
        partition = partition_of(key, self.partitions)
        if partition == record.partition:
            return None
        if not may_move(record):
            message = (
                f"moved too often; it is in {record.partition}, and its key belongs to {partition} of {self.partitions}"
            )
            raise Rejected("internal", message)
        moved = relocate(record, key, partition)
        if size_of(moved) > MAX_INPUT_BYTES:
            message = (
                f"in partition {record.partition} instead of {partition}, and with the header of a move it is larger "
                f"than the {MAX_INPUT_BYTES} bytes of a record; write it to the partition of its key (murmur2)"
            )
            raise Rejected("too_large", message)
        return moved

    def authorised(self, message: Any, record: Record) -> Any:
        """Return the message narrowed to what its sender may do. Raises Rejected `not_allowed` or a limit's code."""
        if self.channel.act is None:
            return message
        return self.admit.admit(message, self.channel.act, _principal(record))


log = structlog.get_logger()


class RequestPipeline:
    """Serves one input topic: admission, then the handler, then the reply."""

    def __init__(
        self, admission: Admission, handler: Handler, replies: Replies, runs: RunRecorder | None = None
    ) -> None:
        """Without `runs` no run is recorded."""
        self._runs = runs
        self._admission = admission
        self._channel = admission.channel
        self._handler = handler
        self._replies = replies
        self._meters = replies.meters

    async def begin(self, record: Record) -> Awaitable[object]:
        """Run the part of a record that depends on order; return an awaitable of the rest."""
        if is_filler(record):
            return no_writes()
        run = NO_RUN if self._runs is None else self._runs.begin(record)
        with run.timer:
            address = None
            try:
                address = self._admission.reply_address(record)
                options = self._admission.reply_options(record, address)
                address = options.address
                if self._admission.is_expired(options):
                    self._meters.expired(record.topic)
                    if not self._channel.outlives_deadline:
                        run.failed("expired")
                        return no_writes()
                    address, options = None, ReplyOptions()
                with run.receiving():
                    message = await self._admission.message(record)
                    if relocated := self._admission.relocated(record, message.scope.boundary.encode()):
                        self._meters.moved(record.topic)
                        return await self._replies.publisher.send(relocated)
                    run.note_message(message)
                    message = await self._authorised(message, record)
                if self._channel.is_concurrent(message):
                    return self._run_to_end(message, record, options, run)
                return await self._handle(message, record, options, run)
            except Rejected as error:
                return await self._refuse(record, address, error, run)

    async def _authorised(self, message: Any, record: Record) -> Any:
        """Return the message as its sender may have it; a turn waits for an authorizer that can't answer."""

        async def attempt() -> Any:
            try:
                return self._admission.authorised(message, record)
            except Rejected as error:
                if error.code != "unavailable":
                    raise
                raise Unavailable(error.message) from error

        try:
            return self._admission.authorised(message, record)
        except Rejected as error:
            # An outage says nothing about this turn: Kafka has accepted it. A request's sender tries again.
            if error.code != "unavailable" or not self._channel.outlives_deadline:
                raise
        return await until_available(attempt, "authorizer", self._meters)

    async def _run_to_end(self, message: Any, record: Record, options: ReplyOptions, run: RunNotes) -> None:
        with run.timer:
            try:
                finishing = await self._handle(message, record, options, run)
            except Rejected as error:
                finishing = await self._refuse(record, options.address, error, run)
        await finishing

    async def _handle(self, message: Any, record: Record, options: ReplyOptions, run: RunNotes) -> Awaitable[object]:
        """Run the handler; an answer that cannot be encoded is a defect of the handler."""
        try:
            result = await self._handler(message, record, options)
            reply = None if options.address is None or result.answer is None else result.answer.encode()
        except Rejected:
            raise
        except (Unavailable, MemoryError) as problem:
            # Memory is short because of everything that runs, so it says nothing about this record.
            if self._channel.outlives_deadline:
                # An accepted record must not be lost: the run ends, and it is delivered again after a restart.
                run.failed("unavailable")
                raise
            raise rejection_of(problem) from problem
        except Exception as problem:
            log.exception("handling failed", **log_context(record))
            raise rejection_of(problem) from problem
        self._meters.handled(record.topic)
        sent = [*result.pending_writes, *[await self._replies.publisher.send(event) for event in result.events]]
        replied = [] if reply is None else await self._replies.reply(record, options.address, reply)
        # What its events lead to has a run of its own.
        if result.answer is not None or not result.events:
            run.answered(result.answer)
        return await_all([*sent, *replied])

    async def _refuse(
        self, record: Record, address: ReplyAddress | None, error: Rejected, run: RunNotes
    ) -> Awaitable[object]:
        keeps_rejected = self._channel.keeps_rejected
        refused = await self._replies.refuse(record, address, error, keeps_rejected=keeps_rejected)
        run.refused(error, is_dead_letter=keeps_rejected or address is None or isinstance(error, Poison))
        return await_all(refused)


def _with_first_headers(record: Record) -> Record:
    """Return a record with the headers that are looked at: one with more is refused."""
    return record if len(record.headers) <= MAX_HEADERS else replace(record, headers=record.headers[:MAX_HEADERS])


def _waits_until_s(record: Record, deadline: int | None) -> float | None:
    """Return until when the caller waits in any case: it stamped the record and the deadline by the same clock."""
    if deadline is None or record.written_after_s is None:
        return None
    wait_ms = deadline - record.timestamp_ms
    return record.written_after_s + wait_ms / 1000 if 0 < wait_ms <= MAX_WAIT_MS else None


def _principal(record: Record) -> str | None:
    """Return the principal that the record names: Kafka does not pass the producer's identity to consumers.

    Raises Rejected `not_allowed` for two: a gateway that appends its header must not be overruled by its client.
    """
    named = {value or b"" for name, value in record.headers if name == PRINCIPAL_HEADER}
    if len(named) > 1:
        raise Rejected("not_allowed", f"the record has several headers {PRINCIPAL_HEADER!r}; give one")
    return next((value.decode(errors="replace") for value in named), None)
