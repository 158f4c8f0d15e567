"""The Faust app of a worker: its settings, each with the reason why it differs from Faust's, its topics and agents."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast
from zlib import crc32

import faust
import structlog
from faust.types.auth import CredentialsT
from modestream_client.kafka.security import KafkaSecurity

from schemas.messages.records import Record
from streams.fair_queue import FairShare
from streams.foreground import Foreground
from streams.runtime.awaited_table import PARTITION_STORE, ChangelogProducer, Commits, DeriveRows
from streams.runtime.delivery import Delivery, HeldEvent, Inbox
from streams.runtime.fast_start_worker import FastStartTables
from streams.runtime.fence import SESSION_TIMEOUT_S, GroupFence
from streams.runtime.follow_copies import FollowCopies
from streams.runtime.membership import Membership
from streams.runtime.partition_assignor import FixedPartitionAssignor, SafeAssignmentApp
from streams.runtime.partition_locks import PartitionLocks
from streams.settings import Settings
from streams.topics import COMPRESSION, MAX_OUTPUT_BYTES, group_id, topics_with_prefix

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def directory_identity(directory: Path) -> int:
    """Return a number common to all processes with this directory: those that its locks keep apart.

    A machine is identified by its boot: directories of two machines may have the same inode.
    """
    machine = BOOT_ID.read_text(encoding="ascii") if BOOT_ID.exists() else socket.gethostname()
    found = directory.stat()
    return crc32(f"{machine}/{found.st_dev}/{found.st_ino}".encode())


def kafka_credentials(security: KafkaSecurity | None) -> CredentialsT | None:
    """Return Faust's credentials; None for a connection without TLS and SASL.

    Raises ValueError or OSError for an unusable password or file.
    """
    if security is None or security.protocol == "PLAINTEXT":
        return None
    context = security.create_ssl_context()
    if not security.uses_sasl:
        return faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=security.username, password=security.read_password(), ssl_context=context, mechanism=security.mechanism
    )


App = faust.App
"""The type of the app, for modules outside of this package: they do not import Faust."""

MAX_POLL_INTERVAL_S = 604_800

log = structlog.get_logger()


class StreamStep(Protocol):
    """The two halves of an agent, as `Delivery` runs them."""

    window: int
    """The limit of events in flight."""
    pause_s: float
    """Minimum time between two calls of `settle`, in seconds."""
    fair_share: FairShare | None
    """How users take turns; None: all events begin in order."""

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Do everything that must happen in order."""

    async def settle(self, finished: Sequence[Any]) -> None:
        """Make the effects of a run of events durable."""


def create_kafka_app(settings: Settings, worker_id: str) -> App:
    """Create an app without agents and tables."""
    app = SafeAssignmentApp(
        group_id(settings),
        broker=";".join(f"kafka://{server}" for server in settings.bootstrap_servers),
        broker_credentials=kafka_credentials(settings.kafka_security),
        datadir=str(settings.data_dir / "partitions"),
        store=f"{PARTITION_STORE}://",
        TableManager=FastStartTables,
        PartitionAssignor=FixedPartitionAssignor,
        key_serializer="raw",
        value_serializer="raw",
        topic_partitions=settings.partitions,
        topic_replication_factor=settings.replication_factor,
        # `ensure_topics` creates the topics, Faust the changelogs; no topic for a leader is needed.
        topic_disable_leader=True,
        # Copies are `FollowCopies`: Faust itself does not know them.
        table_standby_replicas=0,
        # An idle worker, or one paused by back-pressure, must never leave the group: it would not return.
        broker_max_poll_interval=MAX_POLL_INTERVAL_S,
        # Another worker takes over after this; the same one returns at once by its id (`member_name`).
        broker_session_timeout=SESSION_TIMEOUT_S,
        # A member learns of a rebalance by it, and all partitions freeze until the last one has.
        broker_heartbeat_interval=1,
        consumer_group_instance_id=worker_id,
        # Events handled and not committed are handled again after a kill.
        broker_commit_interval=0.5,
        # Faust stops fetching for an agent at 0.8 of its buffer. Records polled before must still fit, or a slow
        # agent's full buffer blocks the topics of all others.
        broker_max_poll_records=200,
        stream_buffer_maxsize=2000,
        # A commit waits for the producer; Faust's default is twenty minutes.
        producer_request_timeout=30,
        # A commit hands over all its rows at once.
        producer_linger=0,
        producer_compression_type=COMPRESSION,
        # A burst of one partition is a dozen records: a full batch would block all later ones.
        producer_max_batch_size=256 * 1024,
        producer_max_request_size=MAX_OUTPUT_BYTES,
        # Faust's web server would expose the tables.
        web_enabled=False,
        web_tables_enabled=False,
        autodiscover=False,
        worker_redirect_stdouts=False,
    )
    # Callers wait for most of these. Faust takes several passes of the event loop for each record, and a flood makes
    # these long.
    topics = topics_with_prefix(settings.topic_prefix)
    app.dedicated_topics = (
        frozenset({topics.retrieve}),
        frozenset({topics.turns}),
        frozenset({topics.commands, topics.changes, topics.jobs, topics.consolidate}),
        # Topics of every turn. The remaining ones keep Faust's consumer polling: the coordinator reports errors there.
        frozenset({topics.remembered, topics.embedded}),
    )
    app.isolation_level = settings.isolation_level
    app.kafka_connection = settings.kafka_connection
    app.fence, app.membership, app.copies = GroupFence(), Membership(), FollowCopies(app)
    app.partition_locks = PartitionLocks(settings.data_dir / "run", lambda: not app.fence.is_closed)
    app.copies.on_due = app.membership.join_again
    if settings.standby_copies:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        cast("FixedPartitionAssignor", app.assignor).keep_copies(
            settings.standby_copies, directory_identity(settings.data_dir), app.copies.ready
        )
    return app


def set_read_topics(app: App, topics: Iterable[str]) -> None:
    """Name the topics that this worker reads, for its group member; call it when all agents and tables exist."""
    cast("SafeAssignmentApp", app).read_topics = frozenset({*topics, *app.tables.changelog_topics})


def create_kafka_channels(app: App, read: list[str]) -> dict[str, faust.types.TopicT]:
    """Return the topics that agents read, with keys and values as bytes."""
    return {name: app.topic(name, key_type=None, value_type=None, allow_empty=True, internal=False) for name in read}


def start_agent(
    app: App,
    topic: str,
    channel: Any,
    name: str,
    step: StreamStep,
    *,
    foreground: Foreground,
    is_background: bool,
    on_settled: Callable[[int], None],
    on_defect: Callable[[], None],
) -> None:
    """Add an agent that runs a step over a topic: the records in its reader's inbox, and those that Faust reads.

    `on_settled` gets the number of events after each call of `settle`; `on_defect` is called when an exception ends the
    agent. A background agent gives way to the requests of `foreground`.
    """
    inbox, typed = Inbox(), cast("SafeAssignmentApp", app)
    typed.inboxes[topic].append(inbox)

    async def settle(finished: Sequence[Any]) -> None:
        await step.settle(finished)
        on_settled(len(finished))

    async def run(stream: Any) -> None:
        delivery: Delivery[Any] = Delivery(
            step.begin,
            settle,
            window=step.window,
            pause_s=step.pause_s,
            fair_share=step.fair_share,
            foreground=foreground,
            is_background=is_background,
        )
        typed.deliveries.append(delivery)
        forwarding = asyncio.create_task(_forward(stream, inbox, app))
        try:
            await delivery.run(inbox)
        except asyncio.CancelledError:
            raise
        except BaseException:
            # An exit too: it ends the whole process, not only this agent.
            log.exception("agent failed", agent=name)
            on_defect()
        finally:
            forwarding.cancel()

    run.__doc__ = type(step).__doc__
    app.agent(channel, name=name)(run)


async def _forward(stream: Any, inbox: Inbox, app: App) -> None:
    """Put the events of Faust's stream into the inbox; it ends with the stream, which ends with its agent."""
    try:
        events = aiter(stream.noack().events())
        # Wait for room first: an event taken before would be handled after its partition was left.
        while await inbox.has_room() and (event := await anext(events, None)) is not None:
            inbox.put(HeldEvent(event.message, app.consumer))
    finally:
        inbox.close()


def fence_of(app: App) -> GroupFence:
    return cast("SafeAssignmentApp", app).fence


def member_name_of(app: App) -> str:
    """Return the name of this worker's group member; call it after `set_read_topics`."""
    return cast("SafeAssignmentApp", app).member_name


def on_joined(app: App, callback: Callable[[str], None]) -> None:
    """Call back with the member id whenever the worker has joined its group, in the consumer's thread."""
    cast("SafeAssignmentApp", app).membership.on_joined = callback


async def confirm_membership(app: App) -> None:
    """End the process if another one has taken its place in the group."""
    await cast("SafeAssignmentApp", app).membership.confirm()


def partition_locks_of(app: App) -> PartitionLocks:
    """Return the partitions whose files are this worker's own."""
    return cast("SafeAssignmentApp", app).partition_locks


def on_partition_lost(app: App, callback: Callable[[int], Awaitable[None]]) -> None:
    """Call back when a partition leaves: to close its files before another process opens it."""
    cast("SafeAssignmentApp", app).on_partition_lost = callback


def on_end(app: App, should_leave: Callable[[], Awaitable[bool]]) -> None:
    """Ask at the end of the worker whether it leaves its group; otherwise it remains a member for its session."""
    cast("SafeAssignmentApp", app).should_leave = should_leave


def on_recovery(app: App, callback: Callable[[], Awaitable[None]]) -> None:
    """Call back whenever all tables are recovered, before events flow. Faust ignores what the callback raises."""
    # Faust calls the callbacks of every table after the recovery of all of them: one table is enough.
    next(iter(app.tables.values())).on_recover(callback)


def copies_of(app: App) -> FollowCopies:
    return cast("SafeAssignmentApp", app).copies


def derive_rows(app: App, table: str, derive: DeriveRows, on_long_recovery: Callable[[int], None]) -> None:
    """Have derived data written where rows of a table are recovered or copied; many are announced by partition."""
    typed = cast("SafeAssignmentApp", app)
    typed.derive[table], typed.on_long_recovery = derive, on_long_recovery


def changelog_of(app: App, table: str) -> str:
    name: str = app.tables[table].changelog_topic.get_topic_name()
    return name


def set_commits(app: App, commits: Commits) -> None:
    """Have the rows of all tables written by these commits."""
    cast("SafeAssignmentApp", app).commits = commits


async def send_row(app: App, topic: str, partition: int, key: bytes, value: bytes | None) -> Awaitable[int]:
    """Hand a row of a changelog to the producer; the result is its offset."""
    return await cast("ChangelogProducer", app.producer).send_row(topic, partition, key, value)
