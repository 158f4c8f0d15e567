"""Types of the request pipeline: an input topic, the options of a reply, the result of a handler. Events of agents."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any
from zlib import crc32

import structlog
from pydantic import BaseModel

from agents.ports.clock import Clock, SteadyClock
from schemas.failures import Poison, Rejected, Unavailable
from schemas.internal.events import Learned
from schemas.messages.commands import BESIDE_COMMANDS, Command
from schemas.messages.decoding import decode
from schemas.messages.records import Headers, Outgoing, Record
from schemas.messages.replies import ReplyAddress, SuccessReply, encode_error
from schemas.state.policies import Permission
from streams.flow.death_counts import DeathCounts
from streams.flow.publisher import Publisher
from streams.observability.metrics import Meters
from streams.observability.tracing import carried_headers, mark_refused
from streams.topics import MAX_OUTPUT_BYTES, Topics
from streams.wire.dead_letters import dead_letter, is_filler, size_of
from streams.wire.partitioning import original_record

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Replies:
    """Writes replies and dead letters. Every method returns an awaitable to await before acknowledging the record."""

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


@dataclass(frozen=True, slots=True)
class Channel:
    """One input topic: the messages it carries and how they are served."""

    topic: str
    kinds: Mapping[str, type[Any]]
    """Models by schema name."""
    act: Permission | None
    """The permission that its senders need; None for internal topics."""
    keeps_rejected: bool = False
    """True if a rejected record becomes a dead letter even if its sender got the error; for turns."""
    outlives_deadline: bool = False
    """True if a record past its deadline is still handled, without a reply; for turns."""
    concurrent: bool = False
    """True if messages are handled concurrently; for those that change nothing."""

    def is_concurrent(self, message: Any) -> bool:
        """True if a message is handled beside those after it."""
        return self.concurrent or (isinstance(message, Command) and message.command in BESIDE_COMMANDS)


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """The address and the deadline of a reply, in milliseconds since the epoch."""

    address: ReplyAddress | None = None
    deadline_ms: int | None = None
    waits_until_s: float | None = None
    """A moment of the steady clock until which the caller waits in any case; None: not known."""

    def is_expired(self, clock: SteadyClock) -> bool:
        return self.seconds_left(clock) < 0

    def seconds_left(self, clock: SteadyClock) -> float:
        """Return the seconds until the deadline; negative after it, infinite without one.

        A deadline is a time of day, and the caller's clock or this one may be wrong by hours: a record that is younger
        than the time that its caller has given it is not late.
        """
        if self.deadline_ms is None:
            return math.inf
        left = self.deadline_ms / 1000 - clock.now().timestamp()
        return left if self.waits_until_s is None else max(left, self.waits_until_s - clock.steady_s())


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """The result of handling a request: its answer, the events that follow, and the writes to await.

    Without an answer, one of the events leads to it: that event carries the request's headers.
    """

    answer: SuccessReply | None
    events: Sequence[Outgoing] = ()
    pending_writes: Sequence[Awaitable[object]] = ()


def rejection_of(problem: Exception) -> Rejected:
    """Return the error that a request gets which fails without one of the contract."""
    if isinstance(problem, MemoryError):
        return Rejected("unavailable", "the worker is short of memory; the same request may succeed later")
    if isinstance(problem, Unavailable):
        return Rejected("unavailable", f"{problem}; the same request may succeed later")
    return Rejected("internal", f"{type(problem).__name__}; the worker's log has the rest")


Handler = Callable[[Any, Record, ReplyOptions], Awaitable[HandlerResult]]
"""Handles one valid message. May raise Rejected, or Unavailable for a later retry."""


MAX_EVENTS = 2048
"""Events that are kept. Readers that are further behind decode what they read."""

MAX_BYTES = 4 * 1024 * 1024
"""Serialised bytes of all kept events; parsed, they take some seven times as much."""

MAX_AGE_S = 60.0
"""Seconds after which events that nothing has read are dropped: their partition is another worker's now."""

APPLIED = object()
"""Kept in place of an event that was applied when it was written."""


class RecentEvents:
    """Events that this process has written and will read again: reading them back costs no decoding.

    Enters: the bytes of a written record with their event. Leaves: the event, for a record with these very bytes, until
    its last reader has it. Guaranteed: what is not kept is decoded as any other record; bounded in events and bytes.
    Belongs to one event loop.
    """

    def __init__(self, readers: Mapping[type[Any], int] | None = None) -> None:
        """`readers` has the number of readers of kinds of events with more than one."""
        self._readers = readers or {}
        self._kept: dict[bytes, tuple[Any, int]] = {}
        self._bytes = 0
        self._since = monotonic()
        """When the oldest event was kept, or a later time: that of the last one that was read."""

    def keep(self, value: bytes, event: Any) -> None:
        """Keep an event until it is read. A full store drops it, unless the events there are too old."""
        if len(self._kept) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            if monotonic() - self._since < MAX_AGE_S:
                return
            self._kept.clear()
            self._bytes = 0
        if not self._kept:
            self._since = monotonic()
        if value not in self._kept:
            self._bytes += len(value)
        self._kept[value] = event, self._readers.get(type(event), 1)

    def take(self, value: bytes | None) -> Any:
        """Return the event with these bytes, or `APPLIED`; None if it is not kept."""
        if value is None or (found := self._kept.get(value)) is None:
            return None
        event, readers = found
        if readers > 1:
            self._kept[value] = event, readers - 1
        else:
            del self._kept[value]
            self._bytes -= len(value)
        self._since = monotonic()
        return event


class EventReader:
    """Decodes the events of an internal topic; an unreadable one and poison become dead letters."""

    def __init__(
        self,
        kinds: Mapping[str, type[Any]],
        replies: Replies,
        deaths: DeathCounts | None = None,
        recent: RecentEvents | None = None,
    ) -> None:
        """`kinds` has the models by schema name; `recent` the events that this process has written."""
        self._recent = recent or RecentEvents()
        self._kinds = kinds
        self._replies = replies
        self._deaths = deaths or DeathCounts()

    async def read(self, record: Record) -> Any:
        """Return the event; None for a filler, and for a record that went to the dead letters; or `APPLIED`."""
        if is_filler(record):
            return None
        try:
            self._deaths.refuse_poison()
            known = self._recent.take(record.value)
            return decode(record.value, self._kinds) if known is None else known
        except Rejected as error:
            await self.reject(record, error)
            return None

    async def reject(self, record: Record, error: Rejected) -> None:
        """Count and log an event that can't be applied, and write it to the dead letters."""
        log.warning("event of an internal topic refused", code=error.dead_letter_code, **log_context(record))
        self._replies.meters.rejected(record.topic, error.code)
        mark_refused(error.code)
        await (await self._replies.dead_letter(record, error))


def event_out(
    topic: str, boundary: str, event: BaseModel, carried: Headers | None = None, *, is_unhurried: bool = False
) -> Outgoing:
    """Return an event as a record in the partition of its boundary; `is_unhurried`: no caller waits for it.

    It carries on the trace of the record whose step runs, or `carried` where the step shares its work among records.
    """
    headers = carried_headers() if carried is None else carried
    value = event.model_dump_json(by_alias=True).encode()
    return Outgoing(topic, boundary.encode(), value, headers, is_unhurried=is_unhurried)


def derived_events(
    topics: Topics,
    boundary: str,
    events: Sequence[BaseModel],
    *,
    is_unhurried: bool = False,
    recent: RecentEvents | None = None,
) -> list[Outgoing]:
    """Return the records of events that follow a write of memories: for the indexer, or for derived state.

    They are kept in `recent`, as this process is to read them again.
    """
    records = []
    for event in events:
        topic = topics.learned if isinstance(event, Learned) else topics.remembered
        out = event_out(topic, boundary, event, is_unhurried=is_unhurried)
        if recent is not None and out.value is not None:
            recent.keep(out.value, event)
        records.append(out)
    return records
