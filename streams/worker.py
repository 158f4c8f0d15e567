"""One worker process: a Faust app with the real parts, between Kafka and the data directory.

Nothing happens on import; `run_worker` blocks until a signal ends it. Exit code 0 after SIGTERM or SIGINT, 70 after
a defect; whoever supervises starts it again.
"""

import asyncio
import gc
import logging
import sys
import uuid
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
import uvloop
from mode import Service

from agents.modes.vector_spaces import VectorSpaces
from schemas.changes import Change
from schemas.consolidation import RunHistory
from schemas.jobs import BackfillTimes
from schemas.modes import GENERAL, ModeDeclarations
from schemas.scope_models import bind_issued_scope
from streams.adapters.durable_files import write_durably
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.kafka.admin import committed_offsets, ensure_topics
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.bootstrap.adapters import (
    INTERACTION_MODEL,
    SystemClock,
    build_models,
    open_admission,
    open_index,
    open_language_models,
)
from streams.bootstrap.agents import build_agents
from streams.bootstrap.scope_guard import save_scope_fields
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.background.asking_model import UnderstandingQueue
from streams.flow.background.reembedding import Reembedding
from streams.flow.background.scheduling import ConsolidationScheduler
from streams.flow.support.backoff import until_available
from streams.flow.support.job_log import JobLog
from streams.flow.support.progress import AppliedOffsets
from streams.flow.worker_context import WorkerContext
from streams.observability.http_server import MonitoringServer
from streams.observability.liveness import StallDetector
from streams.observability.logs import configure_logs
from streams.observability.metrics import Meters
from streams.runtime.fast_start_worker import FastStartWorker
from streams.runtime.kafka_app import create_kafka_app, create_kafka_channels
from streams.runtime.turns_log import KafkaTurnsLog
from streams.runtime.worker_status import WorkerStatus
from streams.settings import Settings
from streams.tables.category_table import CategoryTable
from streams.tables.intention_table import IntentionTable, scope_key
from streams.tables.json_table import MAX_PARSED_MODES, ClaimTable, JsonTable
from streams.tables.memory_table import MemoryTable
from streams.topics import CHANGELOG, group_id, topic_config, topics_with_prefix
from streams.topology import BackgroundHooks, connect, end_process, subscriptions

log = structlog.get_logger()

MAX_TURN_LAG = 20
"""Turns that wait to be accepted at which the backlog of language models waits, too: a second's worth."""

MODEL_LOADING_POLL_INTERVAL_S = 0.05
"""Between two looks whether the general model is loaded."""

THREAD_SWITCH_INTERVAL_S = 0.0001
"""How long a thread may keep the interpreter from another one. A question crosses four times between the event loop and
the thread that reads from Kafka, which then writes its next request, 0.4 ms of Python. Where cores are short a question
takes three quarters of the time that it takes with 0.5 ms, and a turn as much processor time as before."""


class WorkerParts(Service):
    """Everything of a worker beside the Faust app: started before it, stopped after it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        save_scope_fields(settings.data_dir, settings.scope_model)
        self.settings = settings
        self.topics = topics_with_prefix(settings.topic_prefix)
        # The general model is loaded while the rest is made.
        self.embedders = EmbedderRegistry.open(
            settings.models,
            settings.embedders,
            settings.embedding_precision,
            settings.embedding_threads,
            INTERACTION_MODEL,
        )
        self.app = create_kafka_app(settings, settings.worker_id or load_worker_id(settings.data_dir / "worker.id"))
        self.meters = Meters()
        self.publisher = KafkaPublisher(settings.bootstrap_servers, self.meters)
        self.language = open_language_models(settings, self.meters)
        self.models = build_models(self.embedders, self.language)
        self.index = open_index(settings)
        self.words = SqliteLexicalIndex(settings.data_dir / "words")
        self.memories = MemoryTable(self.app)
        self.modes = JsonTable(self.app, "modes", ModeDeclarations, key=str, max_parsed=MAX_PARSED_MODES)
        self.standing = WorkerStatus(self.app, self.topics)
        self.ctx = WorkerContext(
            topics=self.topics,
            partitions=settings.partitions,
            memories=self.memories,
            modes=self.modes,
            claims=ClaimTable(self.app),
            intentions=IntentionTable(self.app),
            categories=CategoryTable(self.app, settings.categories.root),
            consolidations=JsonTable(self.app, "consolidations", RunHistory, key=scope_key),
            issued=JsonTable(self.app, "issued", bind_issued_scope(settings.scope_model), key=str),
            words=self.words,
            progress=AppliedOffsets(),
            publisher=self.publisher,
            clock=SystemClock(),
            meters=self.meters,
            jobs=JobLog(JsonTable(self.app, "jobs", BackfillTimes, key=str)),
            admit=open_admission(settings),
            scope_model=settings.scope_model,
            turns_log=KafkaTurnsLog(self.app, self.topics.turns),
        )
        self.observing = MonitoringServer(self.meters, self._alive, self.standing)
        self.liveness = StallDetector(self.meters.work_done, lambda: sum(self.standing.lag().values()))
        self._beside: list[asyncio.Task[None]] = []

    def wire(self) -> None:
        """Connect the agents to their topics, and the recovery of the tables to the arrival of partitions."""
        agents = build_agents(self.settings, self.models, self.index, self.ctx, self._deployment)
        spaces = VectorSpaces(self.modes, self.embedders)
        self.reembedding = Reembedding(self.index, spaces, self.embedders, self._before_indexer, self.ctx)
        self.asking = UnderstandingQueue(
            agents.understand,
            self.language,
            self.standing.partitions,
            self.ctx,
            at_once=self.settings.llm_concurrency,
            backlog_per_second=self.settings.llm_backlog_per_second,
            busy=lambda: self.standing.lag().get(self.topics.turns, 0) > MAX_TURN_LAG,
        )
        self.embedders.on_loaded = lambda _: self.reembedding.look(self.standing.partitions())
        readers = subscriptions(agents, BackgroundHooks(self.asking.ask, self._changed), self.ctx)
        topics = list(dict.fromkeys(reader.topic for reader in readers))
        connect(self.app, create_kafka_channels(self.app, topics), readers, self.meters, end_process)
        # Faust tells of a recovery when all tables are recovered.
        self.memories.table.on_recover(self._partitions_arrived)

    async def on_start(self) -> None:
        """Make the topics, connect the producer, listen for scrapes."""
        await until_available(lambda: ensure_topics(self.settings, self._kept_as()), "kafka", self.meters)
        await self.publisher.start()
        await self.embedders.start()
        await self.observing.start(self.settings.metrics_port, self.settings.data_dir / "run" / "metrics.port")

    async def on_stop(self) -> None:
        """Close everything, the files last."""
        for task in self._beside:
            task.cancel()
        await self.observing.stop()
        await self.publisher.stop()
        await self.language.close()
        await self.embedders.close()
        await self.index.close()
        self.words.close()

    def _kept_as(self) -> dict[str, dict[str, str]]:
        events = {name: topic_config(self.topics, name) for name in self.topics.all()}
        return events | dict.fromkeys(self.app.tables.changelog_topics, CHANGELOG)

    def _alive(self) -> bool:
        return self.liveness.alive(recovering=self.standing.recovering())

    async def _partitions_arrived(self) -> None:
        """Prepare the partitions before their events flow. Faust ignores what a callback raises, so nothing may."""
        partitions = self.standing.partitions()
        try:
            await self._general_tried()
            changes_end = KafkaTurnsLog(self.app, self.topics.changes).end
            await PartitionPreparer(self._committed, changes_end, self.ctx).prepare(partitions)
        except Exception:
            log.exception("partitions could not be prepared", partitions=sorted(partitions))
            end_process()
        if not self._beside:
            runs = [self.reembedding.run(), *([self._ask_models()] if len(self.settings.llm_profiles) else [])]
            if self.settings.consolidate_every is not None:
                every = timedelta(hours=self.settings.consolidate_every)
                runs.append(ConsolidationScheduler(every, self.ctx).run())
            self._beside = [asyncio.create_task(_until_cancelled(run)) for run in runs]
        self.reembedding.look(partitions)

    async def _ask_models(self) -> None:
        await self.language.prepare()
        await self.asking.run()

    async def _general_tried(self) -> None:
        """Wait until the general model is loaded or known to be missing: what came before would be embedded later."""
        while self.embedders.status()[GENERAL]["state"] == "loading":  # noqa: ASYNC110 - no event covers a failure
            await asyncio.sleep(MODEL_LOADING_POLL_INTERVAL_S)

    def _changed(self, change: Change, partition: int) -> None:
        """What follows a change: vectors are made again, and a correction counts against the classifier."""
        if change.action == "stale":
            self.reembedding.look((partition,))
        elif change.memory_id is not None:
            self.models.reader.record_correction()

    def _before_indexer(self) -> int:
        return self.standing.lag().get(self.topics.remembered, 0)

    def _deployment(self) -> dict[str, Any]:
        """What `health` says of the deployment, by this worker."""
        language = dict(self.language.status())
        return {**self.standing(), "language_model": language or "none", "embedders": self.embedders.status()}

    async def _committed(self) -> dict[tuple[str, int], int]:
        return dict(await committed_offsets(self.settings, group_id(self.settings)))


def load_worker_id(file: Path) -> str:
    """The name of the worker of this data directory: the same after every start."""
    if not file.exists():
        write_durably(file, uuid.uuid4().hex)
    return file.read_text().strip()


async def _until_cancelled(run: Coroutine[Any, Any, None]) -> None:
    """Run what works beside the events. One that ends by itself is a defect: a new start of the process mends it."""
    try:
        await run
    except asyncio.CancelledError:
        raise
    except BaseException:
        log.exception("what works beside the events ended by a defect")
    end_process()


def run_worker(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; then finish what is under way, commit, and exit."""
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    configure_logs(settings.log_level)
    # A turn is some sixty callbacks: this loop runs them in two thirds of the time of Python's own.
    uvloop.install()
    parts = WorkerParts(settings)
    parts.wire()
    # What was imported stays: Faust collects garbage for each table that it opens or closes, a tenth of a second each.
    gc.freeze()
    worker = FastStartWorker(parts.app, parts, quiet=True, loglevel=logging.WARNING, override_logging=False)
    worker.spinner = None
    raise worker.execute_from_commandline()
