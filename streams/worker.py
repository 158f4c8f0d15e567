"""One worker process: a Faust app with real adapters, between Kafka and the data directory.

Nothing happens on import; `run_worker` blocks until a signal ends it. Exit code 0 after SIGTERM or SIGINT, 70 after
a defect; its supervisor starts it again. Refused settings end it by `SystemExit` with the reason.
"""

import asyncio
import gc
import sys
from collections.abc import Collection, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
import uvloop

from schemas.internal.changes import Change
from streams.adapters.embedding.catalog.model_loading import RecordedModels
from streams.adapters.files.object_bytes import ResourceBytes
from streams.adapters.kafka.clients import hosts_of_members
from streams.adapters.kafka.deployment_log import KafkaDeploymentLog, read_successor
from streams.adapters.kafka.logs import KafkaBoundaryLog, KafkaForgottenLogs, KafkaPipelineLog
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.adapters.kafka.topic_maintenance import MoveAddedPartitions, PruneEvents, WatchTopics
from streams.adapters.lexical.boundary_counts import SqliteBoundaryCounts
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.text_processes import TextProcesses
from streams.backoff import until_available
from streams.bootstrap.adapters import (
    build_models,
    open_cross_encoder,
    open_embedders,
    open_file_reader,
    open_indexes,
    open_language_models,
    open_taxonomy,
)
from streams.bootstrap.agents import build_agents
from streams.bootstrap.configured_steps import ConfiguredSteps
from streams.bootstrap.context import build_context
from streams.bootstrap.data_directory import check_scope_fields, load_worker_id, save_scope_fields
from streams.bootstrap.deployment_records import (
    GeneralMode,
    RecordedSpaces,
    agree_on_records,
    refuse_replaced,
    setup_of,
)
from streams.bootstrap.member_guard import MEMBER_FILE, MemberFile, check_member, has_other_directories, should_leave
from streams.bootstrap.partition_assignment import PartitionAssignment, build_preparer
from streams.bootstrap.worker_topics import TopicSettings, prepare_topics, retention_runs
from streams.damaged_stores import StoresSetAside
from streams.flow.background.asking_model import UnderstandingQueue
from streams.flow.background.boundaries import PublishBoundaries
from streams.flow.background.reading_files import ReadFiles
from streams.flow.background.receipts import CheckReceipts
from streams.flow.background.reembedding import Reembedding
from streams.flow.background.scheduling import ConsolidationScheduler, MaintenanceScheduler, backup_status
from streams.flow.pipelines.comparing import PipelineHistory
from streams.foreground import Foreground
from streams.observability.http_server import MonitoringServer, StallDetector
from streams.observability.metrics import Meters
from streams.runtime.awaited_table import databases_of
from streams.runtime.fast_start_worker import run_until_signal
from streams.runtime.fence import end_process, until_cancelled
from streams.runtime.header_names import patch_aiokafka
from streams.runtime.kafka_app import (
    copies_of,
    create_kafka_app,
    create_kafka_channels,
    fence_of,
    member_name_of,
    on_end,
    on_joined,
    on_partition_lost,
    on_recovery,
    partition_locks_of,
    set_read_topics,
)
from streams.runtime.worker_status import WorkerStatus
from streams.settings import Settings
from streams.topics import LogRetention, group_id, topics_with_prefix
from streams.topology import BackgroundHooks, connect, moving_pipelines, subscriptions
from streams.up.child import is_supervised
from streams.wire.cloudevents import CloudEvents, described_topics

log = structlog.get_logger()

MAX_TURN_LAG = 20
"""Lag of the turns topic above which the language model's backlog pauses: a second's worth of turns."""

COLLECTION_THRESHOLDS = (50_000, 2, 20)
"""Python's thresholds of garbage collection. Records and events of a backlog are looked at while they are still used:
with Python's own, 700 objects, that took a fifteenth of a turn's processor time, with 5,000 a nineteenth, with these a
fiftieth. A look at them takes some 40 ms, once in 1,500 turns, and at most 60 when the next older ones are included."""

THREAD_SWITCH_INTERVAL_S = 0.0001
"""Python's thread switch interval. A question crosses four times between the event loop and the thread that reads from
Kafka, which runs 0.4 ms of Python for its next request. On two busy cores a question takes three quarters of the time
that it takes with 0.5 ms; the processor time of a turn does not change."""

OTHER_DIRECTORIES = (
    "a worker with another data directory is in the group, and MODESTREAM_QDRANT_URL is not set: each keeps its vectors"
    " in its own directory, so all vectors of a partition are made again by the worker that gets it; set"
    " MODESTREAM_QDRANT_URL for all, or let them share one directory"
)


class WorkerParts:
    """The parts of a worker around the Faust app: started before it, stopped after it."""

    def __init__(self, settings: Settings) -> None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        check_scope_fields(settings.data_dir, settings.scope_model)
        taxonomy = open_taxonomy(settings)
        self.setup = setup_of(settings, taxonomy)
        self.member_file = MemberFile(settings.worker_run / MEMBER_FILE)
        self.settings = settings
        self.topics = topics_with_prefix(settings.topic_prefix)
        self.group_hosts = partial(hosts_of_members, settings, group_id(settings))
        self.retention = LogRetention.of(settings)
        self.embedders = open_embedders(settings)
        self.app = create_kafka_app(settings, settings.worker_id or load_worker_id(settings.data_dir / "worker.id"))
        self.meters = Meters()
        inputs = self.topics.inputs()
        self.meters.begin(inputs, set(self.topics.consumed()) - inputs)
        source = settings.cloudevents_source
        self.publisher = KafkaPublisher(
            settings.kafka_connection,
            self.topics.replies,
            self.topics.dead_letters,
            self.meters,
            fence_of(self.app),
            None if source is None else CloudEvents(source, described_topics(self.topics)),
        )
        self.deployment_log = KafkaDeploymentLog(settings, self.publisher, self.meters)
        self.spaces = RecordedSpaces(self.deployment_log)
        self.embedders.recorded = RecordedModels(self.deployment_log)
        self.general = GeneralMode(settings.general_embedder, self.embedders)
        self.language = open_language_models(settings, self.meters)
        self.cross_encoder = open_cross_encoder(settings)
        self.models = build_models(self.embedders, self.language, self.cross_encoder, taxonomy)
        foreground = Foreground()
        self.locks = partition_locks_of(self.app)
        self.indexes = open_indexes(settings, foreground, self.locks.is_original)
        self.words = SqliteLexicalIndex(databases_of(self.app))
        self.set_aside = StoresSetAside(settings.data_dir)
        self.status = WorkerStatus(self.app, self.topics)
        self.status.details["copies"] = copies_of(self.app).behind
        self.status.details["awaited"] = self.locks.awaited
        self.texts = TextProcesses()
        self.pipeline_log = KafkaPipelineLog(settings, self.publisher)
        history = PipelineHistory(self.pipeline_log.write)
        self.steps = ConfiguredSteps(settings, self.models.language)
        self.pipelines = self.steps.pipelines(history)
        self.ctx = build_context(
            self.app,
            settings,
            self.words,
            self.publisher,
            self.meters,
            foreground,
            self.pipelines,
            self.texts,
            self.general.complete,
        )
        self.counts = SqliteBoundaryCounts(settings.data_dir / "partitions")
        self.boundaries = PublishBoundaries(self.counts, KafkaBoundaryLog(settings), self.ctx)
        self.file_reader = open_file_reader(settings, self.models.language)
        self.monitoring = MonitoringServer(
            self.meters, lambda: self.stall_detector.alive(recovering=self.status.recovering()), self.status
        )
        self.stall_detector = StallDetector(
            self.meters.work_done,
            # Questions to language models wait for these within bounds of their own.
            lambda: sum(behind for topic, behind in self.status.lag().items() if topic != self.topics.asked),
            self.status.positions,
            self.meters.is_away,
        )
        self._background: list[asyncio.Task[None]] = []
        self._is_warned = False

    def wire(self) -> None:
        """Connect the agents to their topics, and table recovery to the preparation of partitions."""
        agents = build_agents(
            self.settings, self.models, self.steps, self.indexes, self.ctx, self._deployment, self.spaces.note
        )
        indexer_lag = lambda: self.status.lag().get(self.topics.remembered, 0)  # noqa: E731
        self.reembedding = Reembedding(agents.embed, self.indexes, agents.spaces, self.embedders, indexer_lag, self.ctx)
        self.status.details["restoring_vectors"] = self.reembedding.unfinished
        self.understanding = UnderstandingQueue(
            lambda partition: agents.at(partition).understand,
            self.status.partitions,
            self.ctx,
            at_once=self.settings.llm_concurrency,
            backlog_per_second=self.settings.llm_backlog_per_second,
            busy=lambda: self.status.lag().get(self.topics.turns, 0) > MAX_TURN_LAG,
        )
        assert self.ctx.file_bytes is not None
        self.files = ReadFiles(
            lambda partition: agents.at(partition).remember,
            self.file_reader,
            ResourceBytes(self.ctx.file_bytes, self.settings.fetch_uris, self.settings.files_max_bytes),
            indexer_lag,
            self.ctx,
            at_once=2 * self.settings.file_processes,
        )
        self.embedders.on_loaded = lambda _: self.reembedding.look(self.status.partitions())
        self.indexes.watch_losses(lambda: self.reembedding.look(self.status.partitions()))
        consumers = subscriptions(agents, BackgroundHooks(self.understanding.ask, self._on_changed), self.ctx)
        topics = list(dict.fromkeys(consumer.topic for consumer in consumers))
        connect(self.app, create_kafka_channels(self.app, topics), consumers, self.ctx, end_process)
        set_read_topics(self.app, topics)
        on_joined(self.app, self.member_file.note)
        preparer = build_preparer(self.app, self.settings, self.ctx)
        assignment = PartitionAssignment(
            self.app,
            self.status,
            self.embedders,
            preparer,
            agents,
            self.indexes,
            self.ctx,
            on_prepared=self._on_prepared,
            end_process=end_process,
        )
        on_recovery(self.app, assignment.arrived)
        on_partition_lost(self.app, assignment.left)
        # A supervisor starts it again at once, or ends all: its partitions need not move.
        if not is_supervised():
            on_end(self.app, partial(should_leave, self.group_hosts, self.settings.data_dir / "run"))

    async def start(self) -> None:
        """Create the topics, connect the producer, check what the deployment was made with, serve metrics."""
        # First of all: the topics of a deployment that was replaced and deleted are not created again.
        successor = await until_available(partial(read_successor, self.settings), "kafka", self.meters)
        refuse_replaced(self.topics.service, successor)
        created = await prepare_topics(self.settings, self._topic_settings(), self.meters)
        await self.publisher.start()
        agreed = agree_on_records(self.settings, self.deployment_log, created, self.general, self.setup)
        self.service = await agreed
        await self.spaces.read()
        history = self.pipelines.history
        await until_available(lambda: self.pipeline_log.begin(history.take, created), "kafka", self.meters)
        await self.pipelines.start()
        # Not before: a directory that a refused worker has marked would refuse the right settings.
        save_scope_fields(self.settings.data_dir, self.settings.scope_model)
        await self.embedders.start()
        port_file = self.settings.worker_run / "metrics.port"
        await self.monitoring.start(self.settings.metrics_host, self.settings.metrics_port, port_file)
        # Last: of two workers that start together, the later one is to see the earlier one in the group.
        check = partial(check_member, member_name_of(self.app), self.member_file.former, self.group_hosts)
        await until_available(check, "kafka", self.meters)

    async def stop(self) -> None:
        """Close everything, the files of partitions first: another worker may wait for them."""
        for task in self._background:
            task.cancel()
        await self.indexes.close()
        self.words.close()
        databases_of(self.app).close_all()
        self.locks.close()
        await self.monitoring.stop()
        await self.pipeline_log.stop()
        await self.publisher.stop()
        await self.language.close()
        await self.embedders.close()
        await self.cross_encoder.close()
        await self.file_reader.close()
        self.texts.close()
        self.member_file.close()

    def _topic_settings(self) -> TopicSettings:
        return TopicSettings(self.topics, self.app.tables.changelog_topics, self.settings, self.retention)

    def _on_prepared(self, partitions: Collection[int]) -> None:
        """Start what works beside the events, and have it look at what has arrived."""
        if not self._background:
            self._background = [asyncio.create_task(until_cancelled(run)) for run in self._background_runs()]
        self.reembedding.look(partitions)
        self.boundaries.look(partitions)
        self.files.look()
        if self.setup.vector_index == "embedded" and not self._is_warned:
            self._looking = asyncio.create_task(self._warn_of_other_directories())

    async def _warn_of_other_directories(self) -> None:
        """Say once what workers with embedded vectors in several data directories do to each other."""
        if await has_other_directories(self.group_hosts, self.settings.data_dir / "run"):
            self._is_warned = True
            log.warning(OTHER_DIRECTORIES)

    def _background_runs(self) -> list[Coroutine[Any, Any, None]]:
        kept, interval_s = timedelta(seconds=self.retention.events_kept_s), self.retention.pass_interval_s
        watch = WatchTopics(self.settings, self._topic_settings().wanted(), end_process)
        added = MoveAddedPartitions(self.settings, moving_pipelines(self.ctx), self.ctx.served_partitions)
        runs = [self.reembedding.run(), PruneEvents(self.settings, kept, interval_s).run(), watch.run(), added.run()]
        runs += [self.spaces.run(), copies_of(self.app).run(), self.boundaries.run(), self.files.run()]
        runs.append(self.ctx.usage.run(self.ctx.served_partitions))
        runs.append(self.pipeline_log.run(self.pipelines.history.take))
        logs = KafkaForgottenLogs(self.settings, self.app.tables.changelog_topics)
        erases_logs = self.retention.erased_s is not None
        runs.append(CheckReceipts(self.ctx.receipts, self.indexes, logs, self.ctx, erases_logs=erases_logs).run())
        runs += retention_runs(self.settings, self.retention, self.ctx, self.words, self.app.tables.changelog_topics)
        if len(self.settings.llm_profiles):
            runs.append(self._ask_models())
        if (registry := self.settings.schema_registry) is not None:
            from streams.api_docs.registry import register_at_start  # noqa: PLC0415 - few deployments have one

            runs.append(register_at_start(registry.get_secret_value(), self.settings))
        if self.settings.consolidate_every is not None:
            runs.append(ConsolidationScheduler(timedelta(hours=self.settings.consolidate_every), self.ctx).run())
        if self.settings.maintain_every:
            schedule, folder = self.settings.maintain_every, self.settings.backup_to
            runs.append(MaintenanceScheduler(schedule, folder, self.counts, self.ctx).run())
        return runs

    async def _ask_models(self) -> None:
        await self.language.prepare()
        await self.understanding.run()

    def _on_changed(self, change: Change, partition: int) -> None:
        """Re-embed after a changed embedder."""
        if change.action == "stale":
            self.reembedding.look((partition,))

    def _deployment(self) -> dict[str, Any]:
        """Return the part of `health` that is about the deployment, as this worker sees it."""
        language = dict(self.language.status())
        made_with = (self.service, self.setup)
        service = {name: part for each in made_with for name, part in each.model_dump(mode="json").items()}
        service = {**service, "spaces": self.spaces.names()}
        del service["schema_"]
        models = {"language_model": language or "none", "embedders": self.embedders.status()}
        rebuilt = {"rebuilt": self.set_aside.names(), "pipelines": self.pipelines.status()}
        # `health` shows otherwise what its index says.
        index = {"vector_index": "none"} if self.setup.vector_index == "none" else {}
        maintenance = backup_status(self.settings.maintain_every, self.settings.backup_to)
        return {**self.status(), **models, **rebuilt, **index, "maintenance": maintenance, "service": service}


def run_worker(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; then finish what is in flight, commit, and return the exit code.

    Raises SystemExit with the reason for settings that the deployment refuses.
    """
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    # A turn takes some sixty callbacks: uvloop runs them in two thirds of the time of the default loop. Over TLS its
    # connections take 30 s to close where data is still arriving (uvloop issue 471), and a start closes several.
    if settings.kafka_security is None or not settings.kafka_security.uses_tls:
        uvloop.install()
    patch_aiokafka()
    parts = WorkerParts(settings)
    parts.wire()
    # Faust collects garbage for each table that it opens or closes: a tenth of a second each with the imports in it.
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    return run_until_signal(parts.app, parts)
