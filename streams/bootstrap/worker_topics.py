"""The topics of a deployment: missing ones are created at the start of a worker; old and deleted texts leave them.

Ends the process, with the reason, if a topic contradicts these settings.
"""

import sys
from collections.abc import Collection, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from streams.adapters.kafka.clients import NotProvisioned, correct_topic_settings, ensure_topics
from streams.adapters.kafka.logs import KafkaTurnsHistory
from streams.backoff import until_available
from streams.bootstrap.data_directory import MIGRATE
from streams.channels import input_channels
from streams.flow.background.archiving import ArchiveTurns, ErasableWords, EraseTexts
from streams.flow.turns_log import ArchivedTurns
from streams.flow.worker_context import WorkerContext
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import CHANGELOG, LogRetention, Topics, kept_hours, repaired_settings, topic_configs


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topics and changelogs of a deployment, and its settings about them."""

    topics: Topics
    changelogs: Collection[str]
    settings: Settings
    retention: LogRetention

    def wanted(self) -> dict[str, dict[str, str]]:
        configs = topic_configs(self.topics, kept_hours(self.settings))
        named = {topic: {**config, **self._asked_for(topic)} for topic, config in configs.items()}
        return named | {topic: {**CHANGELOG, **self._asked_for(topic)} for topic in self.changelogs}

    def corrected(self) -> dict[str, dict[str, str]]:
        """Return those that a worker corrects: of inputs, which belong to the operator, only requested ones."""
        every = {topic: self._corrected(topic, config) for topic, config in self.wanted().items()}
        return {topic: config for topic, config in every.items() if config}

    def _corrected(self, topic: str, config: dict[str, str]) -> dict[str, str]:
        own = () if topic in self.topics.inputs() else repaired_settings(self.topics, topic)
        return {name: config[name] for name in (*own, *self._asked_for(topic)) if name in config}

    def _asked_for(self, topic: str) -> dict[str, str]:
        if topic in self.changelogs:
            return dict(self.retention.changelog_settings())
        return dict(self.retention.topic_settings(self.topics, topic))


VALIDATES = "setting MODESTREAM_PROVISION is `validate`"

CREATE_THEM = "create what is missing, or start a worker with `create` once"

TopicConfigs = Mapping[str, dict[str, str]]
"""The Kafka settings of topics, by name."""


async def prepare_topics(settings: Settings, topics: TopicSettings, meters: Meters) -> Collection[str]:
    """Create missing topics and correct the others' settings, once Kafka is there; return the names of new ones."""
    created = await until_available(partial(create_topics, settings, topics.wanted()), "kafka", meters)
    await until_available(partial(correct_topics, settings, topics.corrected()), "kafka", meters)
    return created


async def create_topics(settings: Settings, configs: TopicConfigs) -> Collection[str]:
    """Create missing topics; return their names. Raises Unavailable."""
    try:
        return await ensure_topics(settings, dict(configs))
    except NotProvisioned as problem:
        sys.exit(f"{VALIDATES}: {problem}; {CREATE_THEM}")
    except ValueError as problem:
        sys.exit(f"setting MODESTREAM_PARTITIONS: {problem}\n{MIGRATE}")


async def correct_topics(settings: Settings, configs: TopicConfigs) -> None:
    """Correct operators' changes to the worker's own topics, and apply requested settings. Raises Unavailable."""
    try:
        await correct_topic_settings(settings, dict(configs))
    except NotProvisioned as problem:
        sys.exit(f"{VALIDATES}: {problem}; set them, or start a worker with `create` once")
    except ValueError as problem:
        sys.exit(f"settings of topics: {problem}")


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
