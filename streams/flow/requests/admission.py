"""Admission of a record: reply address, deadline, decoding, partition, authorisation.

A record enters; it leaves admitted with its message, relocated to the partition of its key, or expired. Raises Rejected
for everything else.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from agents.commands.admit import Admit
from agents.ports.clock import SteadyClock
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.failures import Rejected
from schemas.messages.decoding import MAX_VALUES, count_values, decode
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyAddress
from streams.flow.death_counts import DeathCounts
from streams.flow.requests.channel import Channel, ReplyOptions
from streams.topics import MAX_INPUT_BYTES
from streams.wire.partitioning import may_move, partition_of, relocate
from streams.wire.record_size import size_of
from streams.wire.reply_address import deadline_ms, parse_reply_address, with_reply_partition

MAX_HEADERS = 1000
"""Headers of a record: each is looked at several times, and 8 MiB could be three million."""

MAX_INLINE_BYTES = 64 * 1024
"""A longer value is decoded in a thread: decoding can take 0.1 s, and the event loop goes on between its steps.
That of a record with deaths is not: its next death is not counted for one that the event loop runs meanwhile."""

MAX_WAIT_MS = 15 * 60 * 1000
"""The longest time that a caller is taken to wait: beyond it, the timestamp is that of an event, or none."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits records of one channel."""

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
        """True if the deadline has passed."""
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
