"""Faust's consumer, fixed to skip no record during partition assignment.

When partitions are assigned, Faust reads their topics at once, pauses them a moment later, recovers tables, resumes
the partitions, seeks them to the committed offsets, and then empties the queues of the agents. Records read before that
are discarded. The seek does not bring them back if nothing is committed, nor if a fetch in progress moved the position
again: the set of partitions to fetch is emptied meanwhile, and aiokafka takes an empty set for all partitions. Faust
then takes the gap for log compaction and commits past it. This lost turns that Kafka had acknowledged when a worker was
killed and restarted.

Here topics of agents are read only after the queues were emptied, a fetch keeps to the partitions that it was started
for, records of partitions that were paused meanwhile are fetched again, and a partition without a commit is read from
its beginning.

Dedicated topics are fetched by a `RequestReader`, at the same times and with the same acknowledgements: Faust assigns
their partitions and commits their offsets, but does not fetch them. Their records go to the inboxes of their agents.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, Protocol, cast

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP
from faust.types.tuples import Message
from modestream_client.kafka.log_reader import next_offset, open_log_reader

from streams.runtime.delivery import Delivery, HeldEvent, Inbox
from streams.runtime.fence import GroupFence, end_process
from streams.runtime.header_names import patch_header_decoding
from streams.runtime.membership import Membership
from streams.runtime.request_reader import (
    READ_COMMITTED,
    RequestReader,
    create_request_consumer,
    readable_end,
    set_isolation_level,
)
from streams.settings import IsolationLevel, KafkaConnection

FETCH_WAIT_MS = 200
"""Time that the broker may delay the response to a fetch without records. Other requests on the connection wait as
long: offsets, twice at every start and rebalance, and once for a `forget`. Faust's 1,500 ms made a start 3 s longer;
200 ms cost an idle worker half a hundredth of a core."""


class GroupApp(Protocol):
    """App attributes needed by the thread; `streams.runtime.partition_assignor.SafeAssignmentApp` has them."""

    fence: GroupFence
    membership: Membership
    isolation_level: IsolationLevel
    leaves_group: bool

    @property
    def member_name(self) -> str:
        """The `group.instance.id` of this worker."""


class ShortPollThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, with short fetches, as the group member of the app's topics."""

    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust has no setting for it. The consumer starts later and reads it then.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001
        app = cast("GroupApp", transport.app)
        consumer._group_instance_id = app.member_name  # noqa: SLF001
        set_isolation_level(consumer, app.isolation_level)
        return consumer

    async def on_start(self) -> None:
        """Connect, and watch the membership of the group, also for the fence."""
        await super().on_start()
        app, consumer = cast("GroupApp", self.transport.app), self._ensure_consumer()
        app.fence.watch(consumer)
        app.membership.watch(consumer)

    async def on_thread_stop(self) -> None:
        """Disconnect, and leave the group if other workers can take over the partitions at once."""
        if cast("GroupApp", self.transport.app).leaves_group and self._consumer is not None:
            # aiokafka leaves the group only for dynamic members; the broker knows this one by its member id.
            self._consumer._coordinator._group_instance_id = None  # noqa: SLF001
        await super().on_thread_stop()

    def highwater(self, tp: TP) -> int:
        """Return the end offset of the readable records, as of the last fetch; 0 before it."""
        return readable_end(self._ensure_consumer(), TopicPartition(*tp)) or 0

    def next_offset(self, tp: TP) -> int | None:
        return next_offset(self._ensure_consumer(), TopicPartition(*tp))

    async def pause_fetching(self, tps: Iterable[TP]) -> None:
        """Stop fetching these partitions until they are assigned again."""
        await self.call_thread(self._pause, [TopicPartition(*tp) for tp in tps])

    async def _pause(self, partitions: list[TopicPartition]) -> None:
        self._ensure_consumer().pause(*partitions)


log = structlog.get_logger()

IN_FLIGHT_TIMEOUT_S = 8.0
"""Time that a rebalance or a shutdown waits for events in progress. All partitions of all workers freeze meanwhile, and
an event may wait hours for a store that is away."""

LAST_KEYS = 50
"""Records at the end of a changelog that show whether it is that of a table: one key in common suffices."""

LAST_KEYS_TIMEOUT_MS = 10_000
"""Time limit of reading them; a fetch from a healthy broker takes a few milliseconds."""

UNDER_WAY_FOR_S = 0.05
"""Time for which the set of partitions with unacknowledged messages is reused: `health` asks for each."""


class ReadingApp(Protocol):
    """App attributes needed by the consumer; `streams.runtime.partition_assignor.SafeAssignmentApp` has them."""

    kafka_connection: KafkaConnection
    isolation_level: IsolationLevel
    dedicated_topics: Sequence[frozenset[str]]
    deliveries: list[Delivery[Any]]
    inboxes: defaultdict[str, list[Inbox]]
    leaves_group: bool
    should_leave: Callable[[], Awaitable[bool]]


class SafeAssignmentConsumer(Consumer):
    """Reads the topics of agents only after Faust has emptied their queues."""

    _thread: ShortPollThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        patch_header_decoding()
        self._awaiting_flow: set[TP] = set()
        self._under_way: set[TP] = set()
        self._under_way_until = 0.0
        self._connection = cast("ReadingApp", self.app).kafka_connection
        self._isolation_level = cast("ReadingApp", self.app).isolation_level
        connect = partial(create_request_consumer, self._connection, self._isolation_level)
        self._readers = {
            topics: RequestReader(connect, self._deliver, self._is_full, self.crash) for topics in self._dedicated
        }

    def _new_consumer_thread(self) -> ShortPollThread:
        return ShortPollThread(self, loop=self.loop, beacon=self.beacon)

    def _set_active_tps(self, tps: set[TP]) -> set[TP]:
        active: set[TP] = super()._set_active_tps({tp for tp in tps if not self._is_agent_topic(tp)})
        return active

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        """Stop reading these partitions, or do not start."""
        tps = set(tps)
        self._awaiting_flow -= tps
        for reader in self._readers.values():
            reader.leave(tps)
        super().pause_partitions(tps)

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Read changelogs from now on; the topics of agents wait for `resume_flow`, which follows the seek."""
        tps = set(tps)
        of_agents = {tp for tp in tps if self._is_agent_topic(tp)}
        self._awaiting_flow |= of_agents
        super().resume_partitions(tps - of_agents)

    def resume_flow(self) -> None:
        super().resume_flow()
        resumed, self._awaiting_flow = self._awaiting_flow, set()
        super().resume_partitions({tp for tp in resumed if not self._is_dedicated(tp)})
        for topics, reader in self._readers.items():
            dedicated = {tp for tp in resumed if tp.topic in topics}
            if dedicated:
                reader.begin({tp: self._read_offset[tp] for tp in dedicated})

    def track(self, message: Message) -> None:
        """Count a message as in progress: a rebalance waits for it."""
        self._unacked_messages.add(message)

    def highwater(self, tp: TP) -> int:
        """Return the last known end offset of a partition's readable records."""
        return self._reader_of(tp).highwater(tp) or 0

    def lag(self, tp: TP) -> int:
        """Count the readable records after the committed offset.

        0 if all were read and nothing is unacknowledged: control records at the end are never committed.
        """
        lag = self.highwater(tp) - (self._committed_offset.get(tp) or 0)
        return 0 if lag <= 0 or self._is_all_acknowledged(tp) else lag

    async def position(self, tp: TP) -> int | None:
        """Return the offset that is fetched next; None while unknown."""
        if self._is_dedicated(tp):
            return self._reader_of(tp).next_offset(tp)
        position: int | None = await super().position(tp)
        return position

    def committed_offset(self, tp: TP) -> int:
        """Return the offset after the last acknowledged record that was committed; 0 without one."""
        return self._committed_offset.get(tp) or 0

    async def written_end(self, tp: TP) -> int:
        """Return the end offset of a partition, open transactions included. Raises KafkaError."""
        async with open_log_reader(self._connection) as reader:
            return (await reader.ends([tp]))[tp]

    async def last_keys(self, tp: TP, last: int) -> list[bytes]:
        """Return the keys of some records at the end of a partition, whose last offset is `last`. Raises KafkaError."""
        if last < 0:
            return []
        async with open_log_reader(self._connection) as reader:
            records, _ = await reader.read(tp, max(0, last + 1 - LAST_KEYS), wait_ms=LAST_KEYS_TIMEOUT_MS)
        return [record.key or b"" for record in records]

    @property
    def hides_open_transactions(self) -> bool:
        """True if records of open transactions, and later ones, are hidden."""
        return self._isolation_level == READ_COMMITTED

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: `streams.observability.http_server` detects stalls.

        Faust's own check ends the worker at a partition that is assigned and not yet sought.
        """

    async def wait_empty(self) -> None:
        """Wait until the events that have begun are acknowledged, for a limited time.

        Later ones are delivered again. In a rebalance the process ends then, as their effects must not follow those of
        the next owner of their partition; it returns as the same static member.
        """
        app = cast("ReadingApp", self.app)
        for inbox in chain.from_iterable(app.inboxes.values()):
            inbox.clear()
        for delivery in app.deliveries:
            delivery.leave_waiting()
        self._clean_unacked_messages()
        # Not cancelled: Faust takes a cancellation for the end of another commit, and keeps waiting.
        waiting = asyncio.ensure_future(super().wait_empty())
        done, _ = await asyncio.wait({waiting}, timeout=IN_FLIGHT_TIMEOUT_S)
        if done:
            await waiting
            return
        left = len(self._unacked_messages)
        if not self.app.should_stop:
            log.error("events are still under way in a rebalance, ending the process", events=left)
            end_process()
        log.warning("events are still under way, they are delivered again", events=left)
        await self.commit_and_end_transactions()

    async def on_stop(self) -> None:
        app = cast("ReadingApp", self.app)
        app.leaves_group = await app.should_leave()
        for reader in self._readers.values():
            await reader.close()
        await super().on_stop()

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        records = await super()._getmany(None if active_partitions is None else set(active_partitions), timeout)
        wanted = self._get_active_partitions() | self._buffered_partitions
        for tp in records:
            # Faust drops records of partitions that were paused meanwhile. A revoked one is sought by its next owner.
            if self._is_agent_topic(tp) and tp not in wanted:
                with suppress(IllegalStateError):
                    self._thread.seek(tp, records[tp][0].offset)
        return records

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to the committed offsets, or to the beginning without one: aiokafka would not move then."""
        committed = await super().seek_to_committed()
        await self._thread.pause_fetching(tp for tp in committed if self._is_dedicated(tp))
        uncommitted = [tp for tp, offset in committed.items() if not offset and self._is_agent_topic(TP(*tp))]
        if uncommitted:
            await self._thread.seek_to_beginning(*uncommitted)
        return committed

    async def _deliver(self, tp: TP, record: Any, expected: int | None) -> None:
        """Put a record into the inboxes of its topic's agents; offsets without a record count as acknowledged."""
        if expected and record.offset > expected:
            await self._add_gap(tp, expected, record.offset - 1)
        inboxes = cast("ReadingApp", self.app).inboxes[tp.topic]
        message = self._to_message(tp, record)
        message.incref(len(inboxes))
        self.track(message)
        written_after_s = cast("RequestReader", self._reader_of(tp)).written_after(tp, record.offset)
        for inbox in inboxes:
            inbox.put(HeldEvent(message, self, written_after_s))
        self._read_offset[tp] = record.offset

    def _is_all_acknowledged(self, tp: TP) -> bool:
        read = self._reader_of(tp).next_offset(tp) or 0
        return read >= self.highwater(tp) and tp not in self._partitions_under_way()

    def _partitions_under_way(self) -> Collection[TP]:
        """Return the partitions with unacknowledged messages, recently computed: a flood has twenty thousand."""
        now = monotonic()
        if now >= self._under_way_until:
            self._under_way = {message.tp for message in list(self._unacked_messages)}
            self._under_way_until = now + UNDER_WAY_FOR_S
        return self._under_way

    def _is_full(self, tp: TP) -> bool:
        """True if an agent of the topic should catch up first."""
        return any(inbox.is_full for inbox in cast("ReadingApp", self.app).inboxes[tp.topic])

    @property
    def _dedicated(self) -> Sequence[frozenset[str]]:
        return cast("ReadingApp", self.app).dedicated_topics

    def _is_dedicated(self, tp: TP) -> bool:
        return any(tp.topic in topics for topics in self._dedicated)

    def _reader_of(self, tp: TP) -> RequestReader | ShortPollThread:
        return next((reader for topics, reader in self._readers.items() if tp.topic in topics), self._thread)

    def _is_agent_topic(self, tp: TP) -> bool:
        """True if agents read the topic. Faust's own set of acknowledged topics is filled too late."""
        return not self._is_changelog_tp(tp)
