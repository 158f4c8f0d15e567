"""Faust's consumer thread as a worker's group member: short fetches, a static member, watched heartbeats."""

from collections.abc import Iterable
from typing import Protocol, cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Transport
from faust.types import TP
from modestream_client.kafka.log_reader import next_offset

from streams.runtime.fence import GroupFence
from streams.runtime.isolation import readable_end, set_isolation_level
from streams.runtime.membership import Membership
from streams.settings import IsolationLevel

FETCH_WAIT_MS = 200
"""Time that the broker may delay the response to a fetch without records. Other requests on the connection wait as
long: offsets, twice at every start and rebalance, and once for a `forget`. Faust's 1,500 ms made a start 3 s longer;
200 ms cost an idle worker half a hundredth of a core."""


class GroupApp(Protocol):
    """App attributes needed by the thread; `streams.runtime.safe_assignment_app.SafeAssignmentApp` has them."""

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
        """Return the offset that is fetched next."""
        return next_offset(self._ensure_consumer(), TopicPartition(*tp))

    async def pause_fetching(self, tps: Iterable[TP]) -> None:
        """Stop fetching these partitions until they are assigned again."""
        await self.call_thread(self._pause, [TopicPartition(*tp) for tp in tps])

    async def _pause(self, partitions: list[TopicPartition]) -> None:
        self._ensure_consumer().pause(*partitions)
