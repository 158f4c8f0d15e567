"""Preparing partitions that arrive at a worker, and indexing recovered and copied memories."""

from functools import partial

from streams.adapters.kafka.admin import committed_offsets
from streams.adapters.lexical.building import LexicalBuilder
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.worker_context import WorkerContext
from streams.runtime.kafka_app import App, copies_of, derive_rows
from streams.settings import Settings
from streams.tables.memory_table import MEMORIES, index_rows
from streams.topics import group_id


def build_preparer(app: App, settings: Settings, ctx: WorkerContext) -> PartitionPreparer:
    """Build it, and have the words of memories written with their rows."""

    async def committed() -> dict[tuple[str, int], int]:
        return dict(await committed_offsets(settings, group_id(settings)))

    words = ctx.stores.words
    derive_rows(app, MEMORIES, partial(index_rows, words), words.drop)
    copies_of(app).foreground = ctx.foreground
    return PartitionPreparer(committed, ctx, LexicalBuilder(settings.data_dir / "partitions"))
