"""Builds the archiver of old turns and the eraser of texts, if the settings ask for them."""

from collections.abc import Collection, Coroutine
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from streams.adapters.kafka.logs import KafkaTurnsHistory
from streams.channels import input_channels
from streams.flow.background.archiving import ArchiveTurns
from streams.flow.background.erasing import ErasableWords, EraseTexts
from streams.flow.turns_archive import ArchivedTurns
from streams.flow.worker_context import WorkerContext
from streams.retention import LogRetention
from streams.settings import Settings


def retention_runs(
    settings: Settings, retention: LogRetention, ctx: WorkerContext, words: ErasableWords, changelogs: Collection[str]
) -> list[Coroutine[Any, Any, None]]:
    """Return background work that runs until cancelled; empty by default."""
    runs: list[Coroutine[Any, Any, None]] = []
    if retention.turns_kept_s is not None:
        kept = timedelta(seconds=retention.turns_kept_s)
        runs.append(_archive(settings, retention, ctx, kept))
    if retention.erasure_interval_s is not None:
        erase = EraseTexts(ctx.topics, ctx.publisher, changelogs, words, ctx.commit, ctx.meters)
        runs.append(erase.run(ctx.served_partitions, retention.erasure_interval_s))
    return runs


async def _archive(settings: Settings, retention: LogRetention, ctx: WorkerContext, kept: timedelta) -> None:
    topic, kinds = ctx.topics.archive, input_channels(ctx.topics, ctx.scope_model).turns.kinds
    keeps_unknown = retention.erased_s is None
    archived = ArchivedTurns(topic, kinds, ctx.partitions, ctx.stores.memories, keeps_unknown=keeps_unknown)
    async with aclosing(KafkaTurnsHistory(settings)) as history:
        archive = ArchiveTurns(history, archived, ctx.publisher, topic, ctx.clock, ctx.meters, kept=kept)
        await archive.run(ctx.served_partitions, retention.pass_interval_s)
