"""Builds the agents of each partition over models, vector index and stores; the same over real parts and fakes."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from modestream_client.hits import Hit
from pydantic_core import to_json

from agents.categories.categorize import Categorize
from agents.categories.matching import CategoryMatcher, CategoryMembers, CategoryVectors
from agents.categories.refresh import CategoryMedoids, RefreshCategories, SummaryModel
from agents.categories.suggest_categories import SuggestCategories
from agents.commands.edit_pipelines import EditPipelines, ShowContexts, ShowJob, ShowRuns
from agents.commands.handle_commands import HandleCommands
from agents.commands.health import FileCounts, Health
from agents.commands.show_files import ShowFiles
from agents.consolidation.consolidate import Consolidate, Deduplicate, Summarise
from agents.context.answer import Answer
from agents.context.assemble import Assemble
from agents.context.snapshot import CategorySummaries, SnapshotReader
from agents.embedding.embed import Embed, ignore_space
from agents.embedding.maintain import CompareEmbedders, Maintain
from agents.intentions.adjust import AdjustIntention, Intend
from agents.maps.draw_map import DrawMap
from agents.maps.layouts import Layouts, MapMemories
from agents.memory.remember import Remember
from agents.modes.suggest_modes import SuggestModes
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import VectorIndex, VectorIndexes
from agents.ports.pipelines import ActivePipelines
from agents.retrieval.drill_down import DrillDown
from agents.retrieval.list_memories import List
from agents.retrieval.retrieve import Retrieve
from agents.rules.interaction.stability import FALLBACK_REASONS
from agents.rules.memory.resources import may_fetch
from agents.rules.ranking.features import RankingWeights
from agents.understanding.interaction_reader import AssessStability, UserStability
from agents.understanding.refresh import Refresh, RefreshLimits
from agents.understanding.understand import Understand
from agents.understanding.word_questions import WordQuestions
from schemas.messages.records import Outgoing
from schemas.messages.retrieval import RetrieveRequest
from schemas.scope_models import selector_of
from schemas.scopes import ScopeFields
from schemas.state.files import uploaded_sha256
from schemas.state.modes import Fingerprint
from streams.adapters.map_layouts import LayoutFiles, LayoutThreads
from streams.bootstrap.adapters import WorkerModels
from streams.bootstrap.configured_steps import ConfiguredSteps
from streams.flow.pipelines.comparing import CompareRevisions
from streams.flow.steps.evaluate import EvaluateRevisions
from streams.flow.steps.remember import PrepareTurns
from streams.flow.stores import PartitionStores
from streams.flow.worker_context import WorkerContext
from streams.observability.tracing import carried_headers
from streams.partition_agents import Agents, PartitionAgents
from streams.settings import Settings
from streams.wire.partitioning import partition_of

RANKING_WEIGHTS = Path(__file__).parents[2] / "agents" / "data" / "ranking_weights.json"

DeploymentStatus = Callable[[], dict[str, Any]]
"""Status of the worker, for `health`."""


class BuildAgents:
    """Builds the agents of one partition at a time."""

    def __init__(
        self,
        settings: Settings,
        models: WorkerModels,
        steps: ConfiguredSteps,
        indexes: VectorIndexes,
        ctx: WorkerContext,
        deployment: DeploymentStatus,
    ) -> None:
        self._settings = settings
        self._models = models
        self._indexes = indexes
        self._ctx = ctx
        self._deployment = deployment
        self._spaces: dict[int, VectorSpaces] = {}
        """By partition: every embedded memory asks for them."""
        self._weights = RankingWeights.loads((settings.ranking_weights or RANKING_WEIGHTS).read_text())
        self._steps = steps
        self._category_vectors = CategoryVectors()
        self._matchers: dict[int, tuple[int, CategoryMatcher]] = {}
        """By partition, with the pipelines of which they are: every item that is embedded asks for one."""
        self._layout_files = LayoutFiles(settings.data_dir / "maps")
        self._layout_threads = LayoutThreads()
        self._stability = AssessStability(
            lambda: [ctx.stores.interactions.get(partition) for partition in ctx.served_partitions()], ctx.clock
        )
        ctx.meters.watch_fallback(FALLBACK_REASONS, lambda: self._stability().reasons)

    def spaces(self, partition: int) -> VectorSpaces:
        if partition not in self._spaces:
            stores = self._ctx.stores.at(partition)
            self._spaces[partition] = VectorSpaces(stores.modes, self._models.embedders, stores.words)
        return self._spaces[partition]

    def matcher_of_new(self, partition: int) -> CategoryMatcher | None:
        """Return the matcher of embedded items; None while the pipelines have it switched off."""
        return self.matcher(partition) if self._ctx.pipelines.current.is_on("memorize.categorize") else None

    def matcher(self, partition: int) -> CategoryMatcher:
        switches = self._ctx.pipelines.switches
        known = self._matchers.get(partition)
        if known is not None and known[0] == switches:
            return known[1]
        stores = self._ctx.stores.at(partition)
        matcher = CategoryMatcher(
            stores.categories,
            stores.memories,
            CategoryMembers(stores.words, self._ctx.scope_model.boundary_fields),
            self._indexes.at(partition),
            self.spaces(partition),
            self._category_vectors,
            self._steps.filing_limits(self._ctx.pipelines.current),
        )
        self._matchers[partition] = switches, matcher
        return matcher

    def __call__(self, partition: int) -> PartitionAgents:
        stores, models, clock = self._ctx.stores.at(partition), self._models, self._ctx.clock
        index = self._indexes.at(partition)
        memories, words, spaces = stores.memories, stores.words, self.spaces(partition)
        pipelines = self._ctx.pipelines
        active = pipelines.current
        boundary_fields = self._ctx.scope_model.boundary_fields
        intend = Intend(stores.intentions, memories, clock, boundary_fields)
        retrieve, assemble = self.answering(partition, active)
        understand = self._understand(stores, active)
        jobs, usage = self._ctx.jobs.at(partition), self._ctx.meters.usage
        schedule = self._settings.maintain_every
        files = FileCounts(stores.files, memories)
        health = Health(
            words,
            stores.modes,
            spaces,
            index,
            jobs,
            lambda: {**self._deployment(), "interaction": self._stability().report()},
            usage,
            files,
            partial(self._ctx.usage.of, partition),
            clock,
            schedule,
        )
        return PartitionAgents(
            remember=Remember(
                memories,
                words,
                stores.modes,
                spaces,
                stores.claims,
                stores.interactions,
                stores.categories,
                stores.files,
                asks_model=self._steps.asks_model(active),
                revision=active.number,
                is_readable=lambda uri: uploaded_sha256(uri) is not None or may_fetch(uri, self._settings.fetch_uris),
            ),
            understand=understand,
            refresh=self._refresh(understand, stores, active),
            retrieve=retrieve,
            rerank=self._steps.rerank(active),
            local_rerank=self._steps.local_rerank(active, models.cross_encoder),
            judge_layers=self._steps.judge_layers(active),
            assemble=assemble,
            answer=Answer(*self._steps.answering(), memories),
            list_memories=List(words, memories, stores.modes),
            draw_map=self._draw_map(stores, spaces, index),
            commands=HandleCommands(
                partition, memories, stores.modes, models.embedders, health, clock, spaces.former_serves
            ),
            edit_pipelines=EditPipelines(partition, pipelines.history, pipelines, clock, self._comparison(partition)),
            intend=intend,
            adjust_intention=AdjustIntention(
                stores.intentions,
                memories,
                words,
                *self._steps.model(active, "evolve.adjust_intention"),
                boundary_fields,
            ),
            categorize=self._categorize(partition, stores, spaces, active),
            suggest_modes=SuggestModes(memories, words, index, spaces),
            suggest_categories=SuggestCategories(
                stores.categories, memories, CategoryMembers(words, boundary_fields), index, spaces
            ),
            maintain=Maintain(partition, memories, words, index, spaces, clock),
            compare_embedders=CompareEmbedders(memories, words, spaces),
            evaluate=EvaluateRevisions(
                memories,
                words,
                selector_of(self._ctx.scope_model),
                pipelines,
                partial(self.answering, partition),
                WordQuestions(*self._steps.wording(), memories),
            ),
            consolidate=self._consolidate(stores, spaces, index, active),
            show_job=ShowJob(jobs),
            show_runs=ShowRuns(partition, self._ctx.run_log),
            show_contexts=ShowContexts(partition, self._ctx.context_log, memories, stores.modes, clock),
            show_files=ShowFiles(memories, words, stores.files),
        )

    def answering(self, partition: int, active: ActivePipelines) -> tuple[Retrieve, Assemble]:
        stores, clock = self._ctx.stores.at(partition), self._ctx.clock
        boundary_fields = self._ctx.scope_model.boundary_fields
        intend = Intend(stores.intentions, stores.memories, clock, boundary_fields)
        retrieve = Retrieve(
            stores.words,
            stores.memories,
            self._indexes.at(partition),
            stores.modes,
            self.spaces(partition),
            clock,
            self._weights,
            DrillDown(stores.words, intend, stores.categories, stores.memories, boundary_fields),
            active,
            self._steps.rank_limits(active),
            files=stores.files,
            give_way=self._ctx.foreground.give_way_to_others,
        )
        return retrieve, self._assemble(stores, retrieve, intend, active)

    def _comparison(self, partition: int) -> CompareRevisions:
        ctx = self._ctx
        return CompareRevisions(
            partition,
            ctx.run_log,
            ctx.stores.at(partition).memories,
            selector_of(ctx.scope_model),
            partial(self.answering, partition),
            partial(PrepareTurns(ctx.pipelines, ctx.stores, ctx.read_text, ctx.meters).analyse, partition),
        )

    def _understand(self, stores: PartitionStores, active: ActivePipelines) -> Understand:
        return Understand(
            self._models.reader,
            *self._steps.model(active, "memorize.understand"),
            stores.modes,
            stores.words,
            stores.memories,
            self._ctx.clock,
            active,
            stores.categories,
        )

    def _refresh(self, understand: Understand, stores: PartitionStores, active: ActivePipelines) -> Refresh:
        limits = RefreshLimits(self._settings.refresh_calls, self._settings.refresh_tokens)
        profile = self._steps.understanding_profile(active)
        run_limits = self._steps.refresh_limits(active)
        return Refresh(understand, stores.memories, stores.words, self._ctx.clock, profile, limits, run_limits)

    def _assemble(
        self, stores: PartitionStores, retrieve: Retrieve, intend: Intend, active: ActivePipelines
    ) -> Assemble:
        summaries = CategorySummaries(stores.words, stores.memories, stores.categories)
        stability = UserStability(self._stability, stores.words, stores.memories, self._ctx.clock)
        return Assemble(
            stores.words,
            stores.memories,
            self._models.tokens,
            partial(self._models.reader.judge, stability=stability),
            retrieve.turns,
            SnapshotReader(
                stores.words,
                stores.memories,
                self._models.taxonomy,
                summaries,
                asks_model=self._steps.asks_model(active),
            ),
            self._ctx.clock,
            self._steps.context_limits(active),
            self._models.taxonomy,
            active,
            stability,
            intend,
        )

    def _draw_map(self, stores: PartitionStores, spaces: VectorSpaces, index: VectorIndex) -> DrawMap:
        points = MapMemories(stores.words)
        layouts = Layouts(points, index, self._layout_files, self._layout_threads, self._ctx.clock)
        return DrawMap(stores.memories, stores.modes, spaces, index, points, layouts)

    def _categorize(
        self, partition: int, stores: PartitionStores, spaces: VectorSpaces, active: ActivePipelines
    ) -> Categorize:
        members = CategoryMembers(stores.words, self._ctx.scope_model.boundary_fields)
        medoids = CategoryMedoids(stores.memories, self._indexes.at(partition), spaces)
        model = SummaryModel(*self._steps.model(active, "evolve.recluster"))
        refresh = RefreshCategories(stores.categories, stores.memories, members, medoids, model)
        return Categorize(stores.categories, stores.memories, members, self.matcher(partition), refresh)

    def _consolidate(
        self, stores: PartitionStores, spaces: VectorSpaces, index: VectorIndex, active: ActivePipelines
    ) -> Consolidate:
        merging = self._steps.merging(active)
        return Consolidate(
            stores.memories,
            stores.words,
            index,
            spaces,
            Summarise(*self._steps.model(active, "evolve.summarise")),
            Deduplicate(
                stores.memories,
                stores.words,
                similarity=merging.similarity or 1.0,
                has_decay=merging.decay is not False,
            ),
            active,
            self._steps.run_limits(active),
            self._steps.cluster_limits(active),
        )


def build_agents(
    settings: Settings,
    models: WorkerModels,
    steps: ConfiguredSteps,
    indexes: VectorIndexes,
    ctx: WorkerContext,
    deployment: DeploymentStatus,
    note_space: Callable[[Fingerprint], None] = ignore_space,
) -> Agents:
    """Return the agents of a worker, those of a partition built on first use; `note_space` gets spaces of vectors."""
    build = BuildAgents(settings, models, steps, indexes, ctx, deployment)
    keeps_vectors = settings.vector_index != "none"
    embed = Embed(build.spaces, indexes, ctx.clock, build.matcher_of_new, note_space, keeps_vectors=keeps_vectors)
    agents = Agents(build, embed, build.spaces, lambda: ctx.pipelines.switches)
    ctx.pipelines.access.searching = partial(_search, agents, ctx)
    ctx.pipelines.access.publishing = partial(_publish, ctx)
    return agents


async def _search(
    agents: Agents, ctx: WorkerContext, scope: ScopeFields, query: str, top_k: int, mode: str | list[str] | None
) -> list[Hit]:
    """Return a custom step's search hits in a scope. Raises Rejected for an unknown mode."""
    selector = selector_of(ctx.scope_model).model_validate(scope)
    request = RetrieveRequest(scope=selector, query=query, top_k=top_k, mode=mode)
    partition = partition_of(selector.boundary.encode(), ctx.partitions)
    return (await agents.at(partition).retrieve.answer(request, bare=True))[0].hits


async def _publish(ctx: WorkerContext, fields: Mapping[str, Any], step_id: str) -> None:
    """Publish a turn of a custom step, which is its sender."""
    boundary = ctx.scope_model.model_validate(fields["scope"]).boundary
    headers = (("principal", f"step:{step_id}".encode()), *carried_headers())
    value = to_json({"schema": "turn.v1", **fields})
    await (await ctx.publisher.send(Outgoing(ctx.topics.turns, boundary.encode(), value, headers)))
