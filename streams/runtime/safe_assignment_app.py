"""The Faust app of a worker and its transport, with the parts that a worker adds."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import faust
from faust.transport.drivers.aiokafka import Transport

from streams.partition.database import PartitionDatabases
from streams.runtime.awaited_table import Commits
from streams.runtime.changelog_producer import ChangelogProducer
from streams.runtime.consumer import SafeAssignmentConsumer
from streams.runtime.delivery import Delivery
from streams.runtime.fence import GroupFence
from streams.runtime.follow_copies import FollowCopies
from streams.runtime.inbox import Inbox
from streams.runtime.membership import Membership, member_name, remain_member
from streams.runtime.partition_locks import PartitionLocks, nothing_open
from streams.runtime.partition_store import DeriveRows
from streams.settings import IsolationLevel, KafkaConnection


class SafeAssignmentTransport(Transport):
    """Faust's Kafka transport with `SafeAssignmentConsumer` and `ChangelogProducer`."""

    Consumer = SafeAssignmentConsumer
    Producer = ChangelogProducer


class SafeAssignmentApp(faust.App):
    """A Faust app over `SafeAssignmentTransport`."""

    fence: GroupFence
    """Closed while the group may have gone on without this worker."""

    dedicated_topics: Sequence[frozenset[str]] = ()
    """Topics with waiting callers: they are read on the event loop, not in Faust's consumer thread. One reader each."""
    membership: Membership
    """Ends the process when another one has taken its place in the group."""
    copies: FollowCopies
    """Keeps copies of partitions that other workers serve."""
    isolation_level: IsolationLevel = "read_uncommitted"
    """Whether records in open transactions are read."""

    kafka_connection: KafkaConnection
    """Options of consumers other than Faust's."""

    partition_locks: PartitionLocks
    """The partitions whose files are this process's own."""

    databases: PartitionDatabases
    """The databases of the partitions that this process holds."""
    commits: Commits
    """The commits of these databases."""

    read_topics: frozenset[str] = frozenset()
    """All topics that this worker reads, changelogs included."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.deliveries: list[Delivery[Any]] = []
        """Those of all agents that have started."""
        self.inboxes: defaultdict[str, list[Inbox]] = defaultdict(list)
        """Agents by topic."""
        self.leaves_group = False
        """True if the worker leaves its group when it ends."""
        self.should_leave: Callable[[], Awaitable[bool]] = remain_member
        """Decides that, at the end."""
        self.derive: dict[str, DeriveRows] = {}
        """Writers of derived data, where rows of a table are recovered or copied, by the table's name."""
        self.on_long_recovery: Callable[[int], None] = lambda _: None
        """Called before many rows of memories are recovered in a partition."""
        self.on_partition_lost: Callable[[int], Awaitable[None]] = nothing_open
        """Closes everything of a partition except its tables, before the next owner may open it."""

    @property
    def member_name(self) -> str:
        """The `group.instance.id` of this worker."""
        return member_name(self.conf.consumer_group_instance_id, self.read_topics)

    def _new_transport(self) -> SafeAssignmentTransport:
        return SafeAssignmentTransport(self.conf.broker_consumer, self)
