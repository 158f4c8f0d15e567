"""Events between agents: read from internal topics, and written to them."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pydantic import BaseModel

from schemas.failures import Rejected
from schemas.internal.events import Learned
from schemas.messages.decoding import decode
from schemas.messages.records import Headers, Outgoing, Record
from streams.flow.requests.replies import Replies, log_context
from streams.flow.support.death_counts import DeathCounts
from streams.flow.support.recent_events import RecentEvents
from streams.observability.tracing import carried_headers, mark_refused
from streams.topics import Topics
from streams.wire.fillers import is_filler

log = structlog.get_logger()


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
