"""The Faust app of a worker and its transport; the app has the parts that a worker adds to Faust's own."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import faust
from faust.transport.drivers.aiokafka import Transport
from faust.types.transports import ProducerT

from streams.partition.database import PartitionDatabases
from streams.runtime.bursts import BurstProducer
from streams.runtime.consumer import SafeAssignmentConsumer
from streams.runtime.delivery import Delivery
from streams.runtime.fence import GroupFence
from streams.runtime.follow_copies import FollowCopies
from streams.runtime.inbox import Inbox
from streams.runtime.membership import Membership, member_name, remain_member
from streams.runtime.partition_locks import PartitionLocks, nothing_open
from streams.settings import IsolationLevel, KafkaConnection


class SafeAssignmentTransport(Transport):
    """Faust's Kafka transport with `SafeAssignmentConsumer` and `BurstProducer`."""

    Consumer = SafeAssignmentConsumer
    Producer = BurstProducer


class SafeAssignmentApp(faust.App):
    """A Faust app over `SafeAssignmentTransport`."""

    fence: GroupFence
    """Closed while the group may have gone on without this worker."""

    dedicated_topics: Sequence[frozenset[str]] = ()
    """Topics with waiting callers: they are read on the event loop, not in Faust's consumer thread. One reader each."""
    membership: Membership
    """Ends the process when another one has its place in the group."""
    copies: FollowCopies
    """Keeps copies of partitions that other workers serve."""
    isolation_level: IsolationLevel = "read_uncommitted"
    """How records in transactions are read."""

    kafka_connection: KafkaConnection
    """What consumers beside Faust's own are created with."""

    partition_locks: PartitionLocks
    """The partitions whose files are this process's own."""

    databases: PartitionDatabases
    """The databases of the partitions that this process holds."""

    read_topics: frozenset[str] = frozenset()
    """All topics that this worker reads, changelogs included."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.deliveries: list[Delivery[Any]] = []
        """Those of all agents that have started."""
        self.inboxes: defaultdict[str, list[Inbox]] = defaultdict(list)
        """Those of the agents of each topic."""
        self.leaves_group = False
        """True if the worker gives its place in the group up when it ends."""
        self.should_leave: Callable[[], Awaitable[bool]] = remain_member
        """Decides that, at the end."""
        self.on_partition_lost: Callable[[int], Awaitable[None]] = nothing_open
        """Closes what is open of a partition besides its tables, before the next owner may open it."""

    @property
    def member_name(self) -> str:
        """The `group.instance.id` of this worker."""
        return member_name(self.conf.consumer_group_instance_id, self.read_topics)

    def _new_transport(self) -> SafeAssignmentTransport:
        return SafeAssignmentTransport(self.conf.broker_consumer, self)

    async def maybe_start_producer(self) -> ProducerT:
        """Return the started producer. Faust's own method yields three times, which would split bursts."""
        producer = self.producer
        return producer if producer.started else await super().maybe_start_producer()
