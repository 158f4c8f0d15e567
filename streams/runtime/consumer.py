"""Faust's consumer, so that no record is passed over when partitions arrive.

When partitions are assigned, Faust reads their topics at once, pauses them a moment later, recovers tables, resumes
them, seeks them to what is committed, and then empties the queues of the agents. What it read before that is thrown
away. The seek does not bring it back where nothing is committed, nor where a fetch that was under way moved the
position again: the set of partitions that it fetches is emptied meanwhile, and aiokafka takes an empty set for all.
Faust then takes the hole for a compacted log, and commits past it. Turns that Kafka had acknowledged were lost so, when
a worker was killed and started again.

Here nothing is read for agents before their queues are kept, a fetch keeps to the partitions that it was begun for,
what is fetched for nobody is fetched again, and a partition without a commit is read from its beginning.

Topics that are read apart have their records from a reader of their own, at the same times and with the same
acknowledgements: Faust assigns their partitions, commits what was settled of them, and fetches nothing of them.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport, server_list
from faust.types import TP
from faust.types.transports import ProducerT

from streams.runtime.bursts import BurstProducer
from streams.runtime.header_names import patch_header_decoding
from streams.runtime.request_reader import RequestReader, create_request_consumer

FETCH_WAIT_MS = 200
"""How long the broker may hold back the answer to a fetch while there are no records. What is asked of it on the same
connection waits as long: offsets, twice at every start and rebalance, and once for a `forget`. Faust's 1,500 ms made a
start 3 s longer; 200 ms cost an idle worker half a hundredth of a core."""


class ShortPollThread(AIOKafkaConsumerThread):
    """Faust's thread for a consumer that never keeps its connection busy for long."""

    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust has no setting for it; it counts from the start of the consumer, which comes later.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001
        return consumer

    async def leave(self, places: Iterable[TP]) -> None:
        """Fetch nothing of these until they are assigned anew."""
        await self.call_thread(self._pause, [TopicPartition(*place) for place in places])

    async def _pause(self, places: list[TopicPartition]) -> None:
        self._ensure_consumer().pause(*places)


class SafeAssignmentConsumer(Consumer):
    """Reads the topics of agents only when their queues are kept."""

    _thread: ShortPollThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        patch_header_decoding()
        self._resumed_last: set[TP] = set()
        servers = server_list(self.app.conf.broker_consumer, Transport.default_port)
        connect = partial(create_request_consumer, servers)
        self._requests = RequestReader(connect, self._deliver, self._full, self.crash)

    def _new_consumer_thread(self) -> ShortPollThread:
        return ShortPollThread(self, loop=self.loop, beacon=self.beacon)

    def _set_active_tps(self, tps: set[TP]) -> set[TP]:
        active: set[TP] = super()._set_active_tps({place for place in tps if not self._is_ours(place)})
        return active

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        """Stop reading, or do not begin."""
        tps = set(tps)
        self._resumed_last -= tps
        self._requests.leave(tps)
        super().pause_partitions(tps)

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Read changelogs from now on; the topics of agents wait for `resume_flow`, which follows the seek."""
        tps = set(tps)
        ours = {place for place in tps if self._is_ours(place)}
        self._resumed_last |= ours
        super().resume_partitions(tps - ours)

    def resume_flow(self) -> None:
        """Read everything."""
        super().resume_flow()
        resumed, self._resumed_last = self._resumed_last, set()
        apart = {place for place in resumed if self._is_apart(place)}
        super().resume_partitions(resumed - apart)
        if apart:
            self._buffered_partitions -= apart
            self._requests.begin({place: self._read_offset[place] for place in apart})

    def on_buffer_drop(self, tp: TP) -> None:
        """Read again for an agent that has room again."""
        if self._is_apart(tp):
            self._buffered_partitions.discard(tp)
        else:
            super().on_buffer_drop(tp)

    def highwater(self, tp: TP) -> int:
        """The offset after the last record of a partition, as far as is known."""
        return self._requests.highwater(tp) or 0 if self._is_apart(tp) else super().highwater(tp)

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing, as `streams.observability.liveness` sees what stands still.

        Faust's own look ends the worker where it meets a partition that was assigned and not yet sought.
        """

    async def on_stop(self) -> None:
        """Read nothing any more, and commit."""
        await self._requests.close()
        await super().on_stop()

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        records = await super()._getmany(None if active_partitions is None else set(active_partitions), timeout)
        wanted = self._get_active_partitions() | self._buffered_partitions
        for place in records:
            # Paused meanwhile: Faust drops these. One that is gone for good is its next owner's to seek.
            if self._is_ours(place) and place not in wanted:
                with suppress(IllegalStateError):
                    self._thread.seek(place, records[place][0].offset)
        return records

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to what is committed, or to the beginning where nothing is: aiokafka stays where it is then."""
        committed = await super().seek_to_committed()
        await self._thread.leave(place for place in committed if self._is_apart(place))
        fresh = [place for place, offset in committed.items() if not offset and self._is_ours(TP(*place))]
        if fresh:
            await self._thread.seek_to_beginning(*fresh)
        return committed

    async def _deliver(self, place: TP, record: Any, due: int | None) -> None:
        """Hand a record on as Faust does; offsets that have no record are as good as settled."""
        if due and record.offset > due:
            await self._add_gap(place, due, record.offset - 1)
        await self.callback(self._to_message(place, record))

    def _full(self) -> set[TP]:
        """Partitions whose agent has no room."""
        return self._buffered_partitions

    def _is_apart(self, place: TP) -> bool:
        return place.topic in cast("SafeAssignmentApp", self.app).dedicated_topics

    def _is_ours(self, place: TP) -> bool:
        """Whether agents read it. What Faust knows to be acknowledged it knows too late."""
        return not self._is_changelog_tp(place)


class SafeAssignmentTransport(Transport):
    """Faust's Kafka, with that consumer, and a producer that writes in bursts."""

    Consumer = SafeAssignmentConsumer
    Producer = BurstProducer


class SafeAssignmentApp(faust.App):
    """A Faust app that reads and writes with these."""

    dedicated_topics: frozenset[str] = frozenset()
    """Topics of agents whose senders wait: they are read on the event loop, beside Faust's thread."""

    def _new_transport(self) -> SafeAssignmentTransport:
        return SafeAssignmentTransport(self.conf.broker_consumer, self)

    async def maybe_start_producer(self) -> ProducerT:
        """The producer, started. Faust's own way there waits for the loop three times, so that no two records meet."""
        producer = self.producer
        return producer if producer.started else await super().maybe_start_producer()
