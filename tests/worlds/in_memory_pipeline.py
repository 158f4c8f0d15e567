"""The whole pipeline in one process over in-memory topics: real steps, agents, rules and lexical index, with fakes for
models, vector index, tables and clock. No broker, no network."""

import asyncio
import shutil
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from agents.commands.admit import Admit
from agents.memory.remember import Remember
from agents.ports.files import FileReader
from agents.understanding.understand import Understand
from schemas.internal.changes import Change
from schemas.models.language import Profiles
from schemas.scopes import Scope
from schemas.state.categories import Taxonomy
from schemas.state.intention import Intention
from schemas.state.memories import Claim, Memory
from schemas.state.modes import GENERAL, Fingerprint, ModeDeclarations, VectorSpace
from streams.adapters.files.object_bytes import ObjectBytes, ResourceBytes
from streams.adapters.lexical.boundary_counts import SqliteBoundaryCounts
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.vectors.none import NoVectors
from streams.bootstrap.adapters import build_models, open_taxonomy
from streams.bootstrap.agents import build_agents
from streams.bootstrap.configured_steps import ConfiguredSteps
from streams.bootstrap.context import CompleteModes
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.background.asking_model import UnderstandingQueue
from streams.flow.background.boundaries import PublishBoundaries
from streams.flow.background.reading_files import ReadFiles
from streams.flow.background.reembedding import Reembedding
from streams.flow.death_counts import DeathCounts
from streams.flow.job_log import JobLog
from streams.flow.pipelines.in_force import Pipelines, shipped_pipelines
from streams.flow.runs.recorder import RunOptions, RunRecorder, RunWriter
from streams.flow.stores import InteractionStore, ScopeStore, Table, UsageLog
from streams.flow.turns_log import TurnsLog
from streams.flow.worker_context import WorkerContext
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets
from streams.partition_agents import Agents
from streams.settings import Settings
from streams.tables.memory_tables import MemoryTable
from streams.topics import topics_with_prefix
from streams.topology import BackgroundHooks, Subscription, connect, subscriptions
from tests.fakes.clock import FakeClock
from tests.fakes.cross_encoder import FakeCrossEncoder
from tests.fakes.embedders import FakeEmbedders, FakeModel
from tests.fakes.file_reader import InProcessFileReader
from tests.fakes.language_model import FakeLanguageModel
from tests.fakes.pipeline_log import FakePipelineLog
from tests.fakes.vector_index import FakeIndex
from tests.worlds.in_memory_boundaries import InMemoryBoundaryLog
from tests.worlds.in_memory_publisher import Arrow, InMemoryPublisher
from tests.worlds.in_memory_requests import PipelineRequests
from tests.worlds.in_memory_run_log import InMemoryContextLog, InMemoryRunLog
from tests.worlds.in_memory_tables import Changelogs, InMemoryTables
from tests.worlds.in_memory_topics import LONGEST_WAIT_SECONDS, InMemoryRequestLog, InMemoryTopics

Lost = Literal["vectors", "words"]
"""Directories of a worker that a test can delete."""


class GivenSettings(Settings):
    """Settings without the environment, which took a tenth of a short test to read."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **_others: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@dataclass
class InMemoryPipeline(PipelineRequests):
    """The state of a worker that outlives a restart, and a client of its topics."""

    directory: Path
    partitions: int = 4
    clock: FakeClock = field(default_factory=FakeClock)
    index: FakeIndex = field(default_factory=FakeIndex)
    embedders: FakeEmbedders = field(default_factory=FakeEmbedders)
    profiles: Profiles = field(default_factory=Profiles)
    language: FakeLanguageModel = field(init=False)
    cross_encoder: FakeCrossEncoder = field(default_factory=FakeCrossEncoder)
    complete_modes: CompleteModes = lambda declared: declared
    meters: Meters = field(default_factory=Meters)
    admit: Admit = field(default_factory=Admit)
    scope_model: type[Scope] = Scope
    turns_log: TurnsLog | None = None
    progress: AppliedOffsets = field(default_factory=AppliedOffsets)
    deaths: DeathCounts = field(default_factory=DeathCounts)
    pipeline_log: FakePipelineLog = field(default_factory=FakePipelineLog)
    pipelines: Pipelines = field(default_factory=shipped_pipelines)
    more_settings: Mapping[str, Any] = field(default_factory=dict)
    run_options: RunOptions = field(default_factory=RunOptions)
    arrows: set[Arrow] = field(default_factory=set)
    observes_arrows: bool = False
    defects: list[str] = field(default_factory=list)
    file_reader: FileReader = field(default_factory=InProcessFileReader)

    def __post_init__(self) -> None:
        self.settings = GivenSettings(
            data_dir=self.directory,
            partitions=self.partitions,
            llm_profiles=self.profiles,
            **{"pipeline_packages": {"tests", "acme"}, "scope_model": self.scope_model, **self.more_settings},
        )
        self.language = FakeLanguageModel(profiles=self.profiles)
        self.names = topics_with_prefix(self.settings.topic_prefix)
        self.file_bytes = ObjectBytes(self.settings.file_place)
        self.topics = InMemoryTopics(self.names, self.partitions, self.clock)
        self.numbers = count()
        self.changelogs: Changelogs = defaultdict(list)
        self._life: InMemoryTables | None = None

    @property
    def tables(self) -> InMemoryTables:
        """The tables, opened when they are first used: as they were last committed and as the changelogs go on."""
        if self._life is None:
            self._life = InMemoryTables(
                self.settings, self.changelogs, self.meters, self.topics.have_room, self._complete, self.clock
            )
        return self._life

    def end_life(self) -> None:
        """Close the tables, as a kill does."""
        if self._life is not None:
            self._life.end()
            self._life = None

    @property
    def memories(self) -> MemoryTable:
        return cast("MemoryTable", self.tables.stores.memories)

    @property
    def modes(self) -> Table[str, ModeDeclarations]:
        return self.tables.stores.modes

    @property
    def claims(self) -> Table[str, Claim]:
        return self.tables.stores.claims

    @property
    def intentions(self) -> ScopeStore[Intention]:
        return self.tables.stores.intentions

    @property
    def categories(self) -> ScopeStore[Taxonomy]:
        return self.tables.stores.categories

    @property
    def interactions(self) -> InteractionStore:
        return self.tables.stores.interactions

    @property
    def jobs(self) -> JobLog:
        return self.tables.jobs

    @property
    def usage(self) -> UsageLog:
        return self.tables.usage_log

    def _complete(self, declared: ModeDeclarations) -> ModeDeclarations:
        return self.complete_modes(declared)

    def copy_to(self, directory: Path) -> "InMemoryPipeline":
        self.end_life()
        shutil.copytree(self.directory, directory)
        copy = InMemoryPipeline(directory, self.partitions, profiles=self.profiles, index=deepcopy(self.index))
        copy.changelogs.update(deepcopy(self.changelogs))
        copy.topics.copy_from(self.topics)
        copy.numbers = count(next(self.numbers))  # Its requests are others.
        return copy

    def lose_files(self, *lost: Lost) -> None:
        """Delete files of the stopped worker.

        With `words` the tables, too, which share their databases: they are restored from their changelogs.
        """
        if "vectors" in lost:
            self.index = FakeIndex()
        if "words" in lost:
            self.end_life()
            shutil.rmtree(self.directory / "partitions", ignore_errors=True)

    def lose_rows(self, table: str) -> None:
        """Lose all rows of a table, with its changelog, of the stopped worker."""
        self.tables.lose_rows(table)
        self.end_life()

    @property
    def embedder(self) -> FakeModel:
        """The model of the mode `general`."""
        return self.embedders.model(GENERAL)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["InMemoryPipeline"]:
        """Run the pipeline until the block ends, as by a kill."""
        app, words = self.tables.app, self.tables.words
        self.jobs._triggers = InMemoryRequestLog(self.topics, self.names.consolidate)
        self.jobs._commands = InMemoryRequestLog(self.topics, self.names.commands)
        self.progress = AppliedOffsets()
        history = await self.pipeline_log.history()
        self.pipelines = ConfiguredSteps(self.settings, self.language).pipelines(history)
        await self.pipelines.start()
        agents, ctx = self.wire(words)
        await PartitionPreparer(self.topics.committed, ctx).prepare(range(self.partitions))
        queue, reembedding = self._background_workers(agents, ctx)
        files = self._file_reading(agents, ctx)
        self.unfinished_vectors = reembedding.unfinished
        hooks = BackgroundHooks(queue.ask, partial(_changed, reembedding))
        self.embedders.on_loaded = lambda _: reembedding.look(range(self.partitions))
        readers = self._readers(agents, ctx, hooks)
        channels = {reader.topic: app.channel() for reader in readers}
        connect(app, channels, readers, ctx, lambda: self.defects.append("an agent ended"))
        app.finalize()
        app.flow_control.resume()
        # Faust's streams, in C and in Python, use these attributes of a consumer and no others.
        app.consumer = cast("Any", SimpleNamespace(unacked=set(), _unacked_messages=set()))
        for agent in app.agents.values():
            await agent.start()
        counts = SqliteBoundaryCounts(self.directory / "partitions")
        self.telling = PublishBoundaries(counts, InMemoryBoundaryLog(self.topics), ctx)
        runs = [asyncio.create_task(each.run()) for each in (queue, reembedding, self.telling, files)]
        for background in (reembedding, self.telling):
            background.look(range(self.partitions))
        await self.topics.attach(app, channels, Counter(reader.topic for reader in readers))
        try:
            yield self
            assert not self.defects
            assert not any(run.done() for run in runs), "a background worker ended"
        finally:
            self.topics.detach()
            # A copy of the worker has topics of its own.
            self.jobs._triggers = self.jobs._commands = None
            for run in runs:
                run.cancel()
            await self.file_reader.close()
            for agent in app.agents.values():
                await agent.stop()
            self.end_life()

    @property
    def vector_index(self) -> FakeIndex | NoVectors:
        return NoVectors() if self.settings.vector_index == "none" else self.index

    def wire(self, words: SqliteLexicalIndex) -> tuple[Agents, WorkerContext]:
        ctx = WorkerContext(
            topics=self.names,
            partitions=self.partitions,
            stores=replace(self.tables.stores, words=words),
            consolidations=self.tables.consolidations,
            issued=self.tables.issued,
            commit=self.tables.commits,
            progress=self.progress,
            publisher=InMemoryPublisher(self.topics, (), self.arrows),
            clock=self.clock,
            meters=self.meters,
            receipts=self.tables.receipts,
            usage=self.usage,
            jobs=self.jobs,
            admit=self.admit,
            scope_model=self.scope_model,
            turns_log=self.turns_log,
            deaths=self.deaths,
            boundaries=self.tables.boundaries,
            pipelines=self.pipelines,
            runs=self._recorder(),
            run_log=InMemoryRunLog(self.topics, self.names.runs),
            context_log=InMemoryContextLog(self.topics, self.names.contexts),
            logs_contexts=self.settings.context_log == "ids",
            file_bytes=self.file_bytes,
            files_grace_s=self.settings.files_grace_s,
        )
        models = build_models(self.embedders, self.language, self.cross_encoder, open_taxonomy(self.settings))
        steps = ConfiguredSteps(self.settings, self.language)
        return build_agents(self.settings, models, steps, self.vector_index, ctx, dict), ctx

    def _recorder(self) -> RunRecorder:
        writer = RunWriter(InMemoryPublisher(self.topics, (), self.arrows), self.meters)
        return RunRecorder(writer.write, self.names, self.clock, self.run_options, self.pipelines.in_force)

    def _readers(self, agents: Agents, ctx: WorkerContext, hooks: BackgroundHooks) -> list[Subscription]:
        """Return the subscriptions, each with a publisher that records its agents where arrows are observed."""
        if not self.observes_arrows:
            return subscriptions(agents, hooks, ctx)
        each = [entry.agent_names for entry in subscriptions(agents, hooks, ctx)]
        publishers = [InMemoryPublisher(self.topics, deciders, self.arrows) for deciders in each]
        return [
            subscriptions(agents, hooks, replace(ctx, publisher=publisher))[number]
            for number, publisher in enumerate(publishers)
        ]

    def _background_workers(self, agents: Agents, ctx: WorkerContext) -> tuple[UnderstandingQueue, Reembedding]:
        here = list(range(self.partitions))
        publisher = InMemoryPublisher(self.topics, (Understand.__name__,), self.arrows)
        queue_ctx = replace(ctx, publisher=publisher)
        queue = UnderstandingQueue(
            lambda partition: agents.at(partition).understand,
            lambda: here,
            queue_ctx,
            at_once=4,
            backlog_per_second=1000,
        )

        return queue, Reembedding(agents.embed, self.vector_index, agents.spaces, self.embedders, lambda: 0, ctx)

    def _file_reading(self, agents: Agents, ctx: WorkerContext) -> ReadFiles:
        source = ResourceBytes(self.file_bytes, self.settings.fetch_uris, self.settings.files_max_bytes)
        publisher = InMemoryPublisher(self.topics, (Remember.__name__,), self.arrows)
        ctx = replace(ctx, publisher=publisher)
        return ReadFiles(
            lambda partition: agents.at(partition).remember, self.file_reader, source, lambda: 0, ctx, at_once=4
        )

    def memory(self, text: str) -> Memory:
        [found] = [memory for memory in self.memories.all() if memory.text == text and memory.origin == "said"]
        return found

    def space(self, mode: str, embedder: str) -> VectorSpace:
        return VectorSpace(mode, self.embedders.fingerprint(embedder))

    def uncounted_partitions(self) -> set[int]:
        """Return the partitions whose users are still to be compared with what the topic `boundaries` tells of them."""
        return self.telling._arrived | self.telling._since.keys()

    async def vectors_in(self, mode: str, fingerprint: Fingerprint, ids: Sequence[str]) -> set[str]:
        return set(await self.index.hashes(VectorSpace(mode, fingerprint), ids))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Poll until a condition holds that needs no further record."""
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            while not condition():
                await asyncio.sleep(0.01)

    async def until_waiting_for(self, what: str) -> None:
        """Wait until the pipeline retries a call to this dependency."""
        await self.until(lambda: f'what="{what}"'.encode() in self.meters.exposition())


def _changed(reembedding: Reembedding, change: Change, partition: int) -> None:
    """Re-embed after a change, as the worker does."""
    if change.action == "stale":
        reembedding.look((partition,))
