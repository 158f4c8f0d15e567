"""Assigns exactly the deployment's partitions; with `STANDBY_COPIES`, with copies on further workers.

Faust assigns topics with different numbers of partitions apart from each other. When an operator adds partitions to an
input topic, a worker would get turns of a user whose tables another worker has. Here every topic counts as having the
deployment's number; `MoveAddedPartitions` reads the others.

Faust's own standbys would be assigned to its consumer and fill its recovery. Copies are invisible to Faust: their
partitions are in the member's metadata under reserved names, and `FollowCopies` reads them.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import faust
import structlog
from faust.assignor import PartitionAssignor
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.transport.drivers.aiokafka import Transport

from streams.partition.database import PartitionDatabases
from streams.runtime.awaited_table import ChangelogProducer, Commits, DeriveRows
from streams.runtime.consumer import SafeAssignmentConsumer
from streams.runtime.delivery import Delivery, Inbox
from streams.runtime.fence import GroupFence
from streams.runtime.follow_copies import FollowCopies
from streams.runtime.membership import Membership, member_name, remain_member
from streams.runtime.partition_locks import PartitionLocks, nothing_open
from streams.settings import IsolationLevel, KafkaConnection
from streams.wire.copy_assignment import Member, assign_partitions

COPIES, READY, DUE = "copies", "copies-ready", "copies-due"
"""Reserved names in a member's metadata, among Faust's topics: the partitions of `Member`."""

DIRECTORY = "copies-directory"
"""Likewise; one number, that of the member's data directory."""

log = structlog.get_logger()


class FixedPartitionAssignor(PartitionAssignor):
    """Faust's assignor for the partitions below `topic_partitions`; after `keep_copies` with copies of each."""

    ready: Callable[[], Collection[int]] = staticmethod(tuple)
    """Returns the partitions whose copy is complete; called in the consumer's thread."""

    _copies_of_each = 0
    _directory = 0

    def keep_copies(self, number: int, directory: int, ready: Callable[[], Collection[int]]) -> None:
        """Have so many copies of each partition assigned; `directory` identifies this worker's data directory."""
        self._copies_of_each, self._directory, self.ready = number, directory, ready

    @property
    def copies(self) -> set[int]:
        """The partitions that this worker keeps a copy of."""
        return set(self._assignment.standbys.get(COPIES, ()))

    @property
    def due(self) -> set[int]:
        """Those that it is to serve as soon as its copy is complete."""
        return set(self._assignment.standbys.get(DUE, ()))

    @property
    def _metadata(self) -> ClientMetadata:
        known: ClientMetadata = super()._metadata
        if not self._copies_of_each:
            return known
        ready = sorted(set(self.ready()) & self.copies)
        kept = {COPIES: sorted(self.copies), READY: ready, DIRECTORY: [self._directory]}
        known.assignment = ClientAssignment(actives=self._assignment.actives, standbys=kept)
        return known

    def _get_copartitioned_groups(  # type: ignore[override]  # a class method in Faust, which calls it by the instance
        self, topics: set[str], cluster: Any, subscriptions: Any
    ) -> MutableMapping[int, Iterable[set[str]]]:
        limit = self.app.conf.topic_partitions
        by_partitions: defaultdict[int, set[str]] = defaultdict(set)
        for topic in topics:
            if found := len(cluster.partitions_for_topic(topic) or ()):
                by_partitions[min(found, limit)].add(topic)
            else:
                log.warning("topic is missing, it is not assigned", topic=topic)
        return {count: self._group_co_subscribed(group, subscriptions) for count, group in by_partitions.items()}

    def _perform_assignment(self, cluster: Any, member_metadata: Any) -> Any:
        if not self._copies_of_each:
            return super()._perform_assignment(cluster, member_metadata)
        known = {name: self._get_client_metadata(metadata) for name, metadata in member_metadata.items()}
        if reason := _reason_for_no_copies(known):
            log.warning("no copies are kept", reason=reason)
            return super()._perform_assignment(cluster, member_metadata)
        subscribed = {name: list(metadata.subscription) for name, metadata in member_metadata.items()}
        self._update_member_urls(known)
        assigned = {name: ClientAssignment(actives={}, standbys={}) for name in known}
        group_ids: dict[str, int] = {}
        read = {topic for topics in subscribed.values() for topic in topics}
        groups = self._get_copartitioned_groups(read, cluster, subscribed)
        for group_id, (partitions, several) in enumerate(sorted(groups.items())):
            for topics in several:
                group_ids |= dict.fromkeys(topics, group_id)
                members = {
                    name: _member(metadata, topics)
                    for name, metadata in known.items()
                    if topics <= set(subscribed[name])
                }
                assign_partitions(members, partitions, self._copies_of_each)
                # Record the assignment of each member. The copies are those of the last group; all usual topics are
                # in one.
                for name, member in members.items():
                    assigned[name].actives.update({topic: sorted(member.actives) for topic in topics})
                    assigned[name].standbys.update({COPIES: sorted(member.copies), DUE: sorted(member.due)})
        actives, external = self._get_changelog_distribution(assigned), self._get_external_topic_distribution(assigned)
        return self._protocol_assignments(assigned, actives, external, group_ids)


def _reason_for_no_copies(members: Mapping[str, ClientMetadata]) -> str | None:
    """Return why copies can't be assigned among these members, None if they can."""
    lacking = [name for name, member in members.items() if DIRECTORY not in member.assignment.standbys]
    if lacking:
        # It would never report a complete copy, so no partition would ever move to it.
        return f"{len(lacking)} of {len(members)} workers have no STANDBY_COPIES; give all of them the same value"
    told = [directory for member in members.values() for directory in member.assignment.standbys.get(DIRECTORY, ())]
    if len(set(told)) < len(told):
        return "workers share a data directory, whose files each of them can serve"
    return None


def _member(known: ClientMetadata, topics: Collection[str]) -> Member:
    """Return a member's own report: its partitions of topics that are assigned together, and its copies."""
    had = known.assignment
    actives = next((set(had.actives[topic]) for topic in sorted(topics) if had.actives.get(topic)), set[int]())
    return Member(actives, set(had.standbys.get(COPIES, ())), frozenset(had.standbys.get(READY, ())))


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
        return member_name(self.conf.consumer_group_instance_id, self.read_topics)

    def _new_transport(self) -> SafeAssignmentTransport:
        return SafeAssignmentTransport(self.conf.broker_consumer, self)
