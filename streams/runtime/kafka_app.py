"""The Faust app of a worker: its settings, each with the reason why it is not Faust's own."""

import faust

from streams.runtime.consumer import SafeAssignmentApp
from streams.runtime.fast_start_worker import FastStartTables
from streams.runtime.held_event import HeldEvent
from streams.settings import Settings
from streams.topics import MAX_OUTPUT_BYTES, group_id, topics_with_prefix

MAX_POLL_INTERVAL_S = 604_800


def create_kafka_app(settings: Settings, worker_id: str) -> faust.App:
    """An app without agents and tables."""
    app = SafeAssignmentApp(
        group_id(settings),
        broker=";".join(f"kafka://{server}" for server in settings.bootstrap_servers),
        datadir=str(settings.data_dir / "tables"),
        store="rocksdb://",
        Event=HeldEvent,
        TableManager=FastStartTables,
        key_serializer="raw",
        value_serializer="raw",
        topic_partitions=settings.partitions,
        topic_replication_factor=settings.replication_factor,
        # We make our topics; Faust makes the changelogs, and needs no topic for a leader.
        topic_disable_leader=True,
        # Standbys would need a second worker's disk; recovery reads the changelog.
        table_standby_replicas=0,
        # A worker that is idle, or paused by back-pressure, must never leave the group by itself: it would not return.
        broker_max_poll_interval=MAX_POLL_INTERVAL_S,
        # Another worker takes over after this; the same one returns at once, by its id.
        broker_session_timeout=12,
        broker_heartbeat_interval=3,
        consumer_group_instance_id=worker_id,
        # What is handled and not committed is handled again after a kill: keep it little.
        broker_commit_interval=0.5,
        # Faust stops fetching for an agent at 0.8 of its buffer. What was polled before must still fit, or a slow
        # agent's full buffer holds up the topics of all others.
        broker_max_poll_records=200,
        stream_buffer_maxsize=2000,
        # A commit waits for the producer: not for twenty minutes.
        producer_request_timeout=30,
        # Changelog records come in bursts already (`bursts` says why).
        producer_linger=0,
        # A dozen records are a burst of one partition: a batch that is full would hold up all that come after it.
        producer_max_batch_size=256 * 1024,
        producer_max_request_size=MAX_OUTPUT_BYTES,
        # Faust's web server would show the tables to everybody.
        web_enabled=False,
        web_tables_enabled=False,
        autodiscover=False,
        worker_redirect_stdouts=False,
    )
    # Only questions have somebody who waits for each. Turns come many at a time, and cost least in one request.
    app.dedicated_topics = frozenset({topics_with_prefix(settings.topic_prefix).retrieve})
    return app


def create_kafka_channels(app: faust.App, read: list[str]) -> dict[str, faust.types.TopicT]:
    """The topics that agents read, as bytes."""
    return {name: app.topic(name, key_type=None, value_type=None, allow_empty=True, internal=False) for name in read}
