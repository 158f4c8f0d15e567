"""One worker process: a Faust app with the real parts, between Kafka and the data directory.

Nothing happens on import; `run_worker` blocks until a signal ends it. Exit code 0 after SIGTERM or SIGINT, 70 after
a defect; whoever supervises starts it again.
"""

import asyncio
import logging
import sys
import uuid
from pathlib import Path

import faust
import structlog
import uvloop
from mode import Service

from streams.adapters.kafka.admin import committed_offsets, ensure_topics
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.adapters.words.sqlite_words import SqliteWords
from streams.flow.arrival import Arrival
from streams.flow.patience import until_available
from streams.flow.progress import Progress
from streams.flow.surroundings import Surroundings
from streams.kafka_app import kafka_app, kafka_channels
from streams.parts import Models, SystemClock, agents_of, general_mode, open_index, start_embedder
from streams.settings import Settings
from streams.tables import MemoryTable
from streams.topics import group_id, named
from streams.topology import connect, end_process, steps
from streams.watching.liveness import Liveness
from streams.watching.logs import configure_logs
from streams.watching.metrics import Meters
from streams.watching.observing import Observing
from streams.watching.standing import Standing

log = structlog.get_logger()

SWITCH_SECONDS = 0.0005
"""How long the event loop may keep the interpreter from a thread that has a vector to hand over. Python's own 5 ms is
as long as three short texts take, and each text waits for it more than once."""


class Parts(Service):
    """Everything of a worker beside the Faust app: started before it, stopped after it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.topics = named(settings.topic_prefix)
        # Its model is loaded while the rest is made.
        self.embedder = start_embedder(settings)
        self.app = kafka_app(settings, settings.worker_id or kept_worker_id(settings.data_dir / "worker.id"))
        self.meters = Meters()
        self.publisher = KafkaPublisher(settings.bootstrap_servers, self.meters)
        self.models = Models(self.embedder, general_mode())
        self.index = open_index(settings)
        self.words = SqliteWords(settings.data_dir / "words")
        self.memories = MemoryTable(self.app)
        self.standing = Standing(self.app, self.topics)
        self.around = Surroundings(
            topics=self.topics,
            partitions=settings.partitions,
            memories=self.memories,
            words=self.words,
            progress=Progress(),
            publisher=self.publisher,
            clock=SystemClock(),
            meters=self.meters,
        )
        self.observing = Observing(self.meters, self._alive, self.standing)
        self.liveness = Liveness(self.meters.work_done, lambda: sum(self.standing.lag().values()))
        self._reconciling: asyncio.Task[int] | None = None

    def wire(self) -> None:
        """Connect the agents to their topics, and the recovery of the table to the arrival of partitions."""
        agents = agents_of(self.settings, self.models, self.index, self.around, self.standing)
        readers = steps(agents, self.around)
        connect(self.app, kafka_channels(self.app, list(readers)), readers, self.meters, end_process)
        self.memories.table.on_recover(self._partitions_arrived)

    async def on_start(self) -> None:
        """Make the topics, connect the producer, listen for scrapes."""
        await until_available(lambda: ensure_topics(self.settings, self.topics), "kafka", self.meters)
        await self.publisher.start()
        await self.observing.start(self.settings.metrics_port, self.settings.data_dir / "run" / "metrics.port")

    async def on_stop(self) -> None:
        """Close everything, the files last."""
        if self._reconciling is not None:
            self._reconciling.cancel()
        await self.observing.stop()
        await self.publisher.stop()
        await self.embedder.close()
        await self.index.close()
        self.words.close()

    def _alive(self) -> bool:
        return self.liveness.alive(recovering=self.standing.recovering())

    async def _partitions_arrived(self) -> None:
        """Prepare the partitions before their events flow. Faust ignores what a callback raises, so nothing may."""
        partitions = self.standing.partitions()
        try:
            arrival = Arrival(self.memories, self.index, self.models.space, self._committed, self.around)
            await arrival.prepare(partitions)
        except Exception:
            log.exception("partitions could not be prepared", partitions=sorted(partitions))
            end_process()
        if self._reconciling is not None:
            self._reconciling.cancel()
        self._reconciling = asyncio.create_task(arrival.reconcile(partitions))

    async def _committed(self) -> dict[tuple[str, int], int]:
        return dict(await committed_offsets(self.settings, group_id(self.settings)))


def kept_worker_id(file: Path) -> str:
    """The name of the worker of this data directory: the same after every start."""
    if not file.exists():
        file.write_text(uuid.uuid4().hex)
    return file.read_text().strip()


def run_worker(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; then finish what is under way, commit, and exit."""
    sys.setswitchinterval(SWITCH_SECONDS)
    configure_logs(settings.log_level)
    # A turn is some sixty callbacks: this loop runs them in two thirds of the time of Python's own.
    uvloop.install()
    parts = Parts(settings)
    parts.wire()
    worker = faust.Worker(parts.app, parts, quiet=True, loglevel=logging.WARNING, override_logging=False)
    worker.spinner = None
    raise worker.execute_from_commandline()
