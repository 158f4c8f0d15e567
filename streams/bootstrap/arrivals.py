"""What prepares the partitions that arrive at a worker, and keeps the words of the copies that it has of others."""

from streams.adapters.kafka.admin import committed_offsets
from streams.adapters.lexical.building import LexicalBuilder
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.background.word_copies import WordCopies
from streams.flow.worker_context import WorkerContext
from streams.runtime.changelog_rows import ChangelogRows
from streams.runtime.kafka_app import App, derive_copies
from streams.runtime.turns_log import KafkaTurnsLog
from streams.settings import Settings
from streams.tables.memory_table import MEMORIES, read_row
from streams.topics import group_id


def build_preparer(app: App, settings: Settings, ctx: WorkerContext) -> PartitionPreparer:
    """Build it, and where copies are asked for have their words kept up with their tables."""

    async def committed() -> dict[tuple[str, int], int]:
        return dict(await committed_offsets(settings, group_id(settings)))

    async def log_end(topic: str, partition: int) -> int:
        return await KafkaTurnsLog(app, topic).end(partition)

    if not settings.standby_copies:
        return PartitionPreparer(committed, log_end, ctx)
    changelog = ChangelogRows(app, MEMORIES)
    copies = WordCopies(ctx.stores.words, changelog.topic, read_row, ctx.foreground)
    derive_copies(app, MEMORIES, copies)
    build = LexicalBuilder(settings.data_dir / "words")
    return PartitionPreparer(committed, log_end, ctx, copies, changelog.after, build)
