"""Handling of partitions that arrive, before their events flow, and of those that leave."""

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import structlog

from agents.ports.indexes import VectorIndexes
from schemas.state.modes import GENERAL
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.kafka.clients import committed_offsets
from streams.adapters.lexical.building import LexicalBuilder
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.worker_context import WorkerContext
from streams.partition_agents import Agents
from streams.runtime.kafka_app import App, confirm_membership, copies_of, derive_rows, partition_locks_of
from streams.runtime.worker_status import WorkerStatus
from streams.settings import Settings
from streams.tables.memory_tables import MEMORIES, index_rows
from streams.topics import group_id


def build_preparer(app: App, settings: Settings, ctx: WorkerContext) -> PartitionPreparer:
    """Build it, and have the words of memories written with their rows."""

    async def committed() -> dict[tuple[str, int], int]:
        return dict(await committed_offsets(settings, group_id(settings)))

    words = ctx.stores.words
    derive_rows(app, MEMORIES, partial(index_rows, words), words.drop)
    copies_of(app).foreground = ctx.foreground
    return PartitionPreparer(committed, ctx, LexicalBuilder(settings.data_dir / "partitions"))


log = structlog.get_logger()

MODEL_LOADING_POLL_INTERVAL_S = 0.05
"""Interval between polls of the general model's state."""


class PartitionAssignment:
    """The callbacks of a Faust app whose partitions arrive and leave."""

    def __init__(
        self,
        app: App,
        status: WorkerStatus,
        embedders: EmbedderRegistry,
        preparer: PartitionPreparer,
        agents: Agents,
        indexes: VectorIndexes,
        ctx: WorkerContext,
        on_prepared: Callable[[Collection[int]], None],
        end_process: Callable[[], None],
    ) -> None:
        """`on_prepared` starts the background work."""
        self._app = app
        self._status = status
        self._locks = partition_locks_of(app)
        self._embedders = embedders
        self._preparer = preparer
        self._agents = agents
        self._indexes = indexes
        self._ctx = ctx
        self._on_prepared = on_prepared
        self._end_process = end_process

    async def arrived(self) -> None:
        """Prepare assigned partitions before their events flow.

        Ends the process on failure, a cancellation included: Faust would ignore both, and let events flow. Where
        partitions have left meanwhile, the next assignment prepares the remaining ones.
        """
        partitions = self._status.partitions()
        try:
            # Wait until the general model is loaded or missing; an earlier memory would be embedded later.
            while self._embedders.status()[GENERAL]["state"] == "loading":  # noqa: ASYNC110 - no event covers a failure
                await asyncio.sleep(MODEL_LOADING_POLL_INTERVAL_S)
            # A rebalance does not end this callback: files may be another process's by now.
            if self._have_left(partitions):
                return
            await self._preparer.prepare(partitions)
        except BaseException:
            # aiokafka's `stop` may cancel its awaiting task. At the end of the worker all tasks are cancelled.
            if self._app.should_stop:
                raise
            if self._have_left(partitions):
                return
            log.exception("partitions could not be prepared", partitions=sorted(partitions))
            self._end_process()
        # Of two workers that start together, only one may work.
        await confirm_membership(self._app)
        log.info("partitions ready", partitions=sorted(partitions))
        self._on_prepared(partitions)

    async def left(self, partition: int) -> None:
        """Close the stores of a partition that has no events in progress."""
        self._ctx.progress.leave(partition)
        self._agents.leave(partition)
        self._ctx.stores.words.release(partition)
        await self._indexes.release(partition)

    def _have_left(self, partitions: Collection[int]) -> bool:
        """True if some of the partitions are another worker's since a rebalance."""
        left = [partition for partition in sorted(partitions) if not self._locks.is_original(partition)]
        if left:
            log.info("partitions left while they were prepared", partitions=left)
        return bool(left)
