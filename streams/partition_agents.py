"""The agents of a worker: by partition, over its stores; the indexer is one, as its batches span partitions."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.categories.categorize import Categorize
from agents.categories.suggest_categories import SuggestCategories
from agents.commands.edit_pipelines import EditPipelines, ShowContexts, ShowJob, ShowRuns
from agents.commands.handle_commands import HandleCommands
from agents.commands.show_files import ShowFiles
from agents.consolidation.consolidate import Consolidate
from agents.context.answer import Answer
from agents.context.assemble import Assemble
from agents.embedding.embed import Embed
from agents.embedding.maintain import CompareEmbedders, Maintain
from agents.intentions.adjust import AdjustIntention, Intend
from agents.maps.draw_map import DrawMap
from agents.memory.remember import Remember
from agents.modes.suggest_modes import SuggestModes
from agents.modes.vector_spaces import VectorSpaces
from agents.retrieval.list_memories import List
from agents.retrieval.retrieve import JudgeLayers, LocalRerank, Rerank, Retrieve
from agents.understanding.refresh import Refresh
from agents.understanding.understand import Understand
from streams.flow.steps.answer import RetrievalAgents
from streams.flow.steps.evaluate import EvaluateRevisions


@dataclass(frozen=True, slots=True)
class PartitionAgents:
    """The agents of one partition, built over its stores."""

    remember: Remember
    understand: Understand
    refresh: Refresh
    retrieve: Retrieve
    rerank: Rerank
    local_rerank: LocalRerank
    judge_layers: JudgeLayers
    assemble: Assemble
    answer: Answer
    list_memories: List
    draw_map: DrawMap
    commands: HandleCommands
    edit_pipelines: EditPipelines
    intend: Intend
    adjust_intention: AdjustIntention
    categorize: Categorize
    suggest_modes: SuggestModes
    suggest_categories: SuggestCategories
    maintain: Maintain
    compare_embedders: CompareEmbedders
    evaluate: EvaluateRevisions
    consolidate: Consolidate
    show_job: ShowJob
    show_runs: ShowRuns
    show_contexts: ShowContexts
    show_files: ShowFiles

    @property
    def retrieval(self) -> RetrievalAgents:
        """The agents that answer questions, with a model or without."""
        return RetrievalAgents(self.retrieve, self.rerank, self.local_rerank, self.judge_layers)


class Agents:
    """All agents: by partition, and the indexer; its batches span partitions."""

    def __init__(
        self,
        build: Callable[[int], PartitionAgents],
        embed: Embed,
        spaces: Callable[[int], VectorSpaces],
        revision: Callable[[], int] = lambda: 0,
    ) -> None:
        """`spaces` returns the vector spaces of a partition, `revision` a number that grows as the pipelines switch."""
        self._build = build
        self._revision = revision
        self._built: dict[int, tuple[int, PartitionAgents]] = {}
        self.embed = embed
        self.spaces = spaces

    def at(self, partition: int) -> PartitionAgents:
        """Return the agents of a partition, built on first use and for each revision of the pipelines.

        An event that has begun keeps the agent that it has: no event sees two revisions.
        """
        revision, known = self._revision(), self._built.get(partition)
        if known is not None and known[0] == revision:
            return known[1]
        built = self._build(partition)
        if known is not None:
            # It holds the layouts that are being made.
            built = replace(built, draw_map=known[1].draw_map)
        self._built[partition] = revision, built
        return built

    def leave(self, partition: int) -> None:
        """Drop the agents of a partition that leaves this worker: their stores are closed."""
        self._built.pop(partition, None)
