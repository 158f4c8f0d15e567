"""Events between agents: read from internal topics, and written to them."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import structlog
from pydantic import BaseModel

from schemas.failures import Rejected
from schemas.internal.events import Learned
from schemas.messages.decoding import decode
from schemas.messages.records import Headers, Outgoing, Record
from streams.flow.death_counts import DeathCounts
from streams.flow.requests.channel import Replies, log_context
from streams.observability.tracing import carried_headers, mark_refused
from streams.topics import Topics
from streams.wire.dead_letters import is_filler

log = structlog.get_logger()


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
        """Keep an event until it is read. A full store keeps what it has: that is read first."""
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
