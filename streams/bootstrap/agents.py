"""The agents of a worker over its parts: who is given what. They are the same over real parts and over fakes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.categories.categorize import Categorize
from agents.categories.matching import CategoryMatcher
from agents.categories.medoids import CategoryMedoids
from agents.categories.members import CategoryMembers
from agents.categories.refresh import RefreshCategories, SummaryModel
from agents.commands.handle_commands import HandleCommands
from agents.commands.health import Health
from agents.consolidation.consolidate import Consolidate, RunLimits
from agents.consolidation.deduplicate import Deduplicate
from agents.consolidation.summarise import Summarise
from agents.context.assemble import Assemble
from agents.context.category_summaries import CategorySummaries
from agents.embedding.embed import Embed
from agents.embedding.maintain import Maintain
from agents.intentions.intend import Intend
from agents.memory.remember import Remember
from agents.modes.suggest_modes import SuggestModes
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.vector_index import VectorIndex
from agents.retrieval.drill_down import DrillDown
from agents.retrieval.retrieve import Retrieve
from agents.rules.prompts.prompting import Template
from agents.rules.ranking.weights import RankingWeights
from agents.understanding.understand import Understand
from streams.adapters.language.prompt_files import read_prompt
from streams.bootstrap.adapters import WorkerModels
from streams.flow.worker_context import WorkerContext
from streams.settings import Settings
from streams.topology import Agents

RANKING_WEIGHTS = Path(__file__).parents[2] / "agents" / "data" / "ranking_weights.json"
"""The weights that come with the project."""

UNDERSTANDING_PROMPT = "understand-1"
"""The version of the prompt that language models are asked by."""

DISTILLING_PROMPT = "distil-1"
"""The version of the prompt by which they distil."""

CATEGORY_PROMPT = "categorize-1"
"""The version of the prompt that language models sum up categories by."""

DeploymentStatus = Callable[[], dict[str, Any]]
"""How the worker stands, for `health`."""


def build_agents(
    settings: Settings, models: WorkerModels, index: VectorIndex, ctx: WorkerContext, deployment: DeploymentStatus
) -> Agents:
    """The agents over these parts."""
    weights = RankingWeights.loads((settings.ranking_weights or RANKING_WEIGHTS).read_text())
    memories, words, modes, clock = ctx.memories, ctx.words, ctx.modes, ctx.clock
    spaces, asks_model = VectorSpaces(modes, models.embedders), len(settings.llm_profiles) > 0
    intend = Intend(ctx.intentions, memories, clock)
    layers = DrillDown(intend, ctx.categories, memories.get)
    retrieve = Retrieve(words, memories.get, index, modes, spaces, clock, weights, layers)
    capsules = CategorySummaries(words, memories.get, ctx.categories)
    members = CategoryMembers(words)
    fits = CategoryMatcher(ctx.categories, memories, members, index, spaces)
    refreshing = _refreshing(models, index, ctx, members, spaces)
    categorize = Categorize(ctx.categories, memories, members, fits, refreshing)
    suggest = SuggestModes(memories.get, words, index, spaces)
    return Agents(
        remember=Remember(memories, words, modes, spaces, ctx.claims, asks_model=asks_model),
        embed=Embed(spaces, index, clock, fits),
        understand=Understand(
            models.reader,
            models.language,
            _template(UNDERSTANDING_PROMPT),
            modes,
            words,
            memories.get,
            clock,
            ctx.categories,
        ),
        retrieve=retrieve,
        assemble=Assemble(
            words, memories.get, models.tokens, models.reader.judge, retrieve.turns, capsules, asks_model=asks_model
        ),
        govern=HandleCommands(
            memories,
            modes,
            models.embedders,
            Health(words, modes, spaces, index, ctx.jobs, deployment, ctx.meters.usage),
            clock,
            {**intend.commands, **categorize.commands, **suggest.commands},
            (intend.before_forgetting, categorize.before_forgetting),
        ),
        intend=intend,
        categorize=categorize,
        maintain=Maintain(memories, words, index, spaces, clock),
        consolidate=Consolidate(
            memories,
            words,
            index,
            spaces,
            Summarise(models.language, _template(DISTILLING_PROMPT)),
            Deduplicate(memories, words),
            RunLimits(settings.consolidation_seconds, settings.consolidation_tokens),
        ),
    )


def _refreshing(
    models: WorkerModels, index: VectorIndex, ctx: WorkerContext, members: CategoryMembers, spaces: VectorSpaces
) -> RefreshCategories:
    """Who makes summaries of categories anew."""
    best = CategoryMedoids(ctx.memories, index, spaces)
    model = SummaryModel(models.language, _template(CATEGORY_PROMPT))
    return RefreshCategories(ctx.categories, ctx.memories, members, best, model)


def _template(version: str) -> Template:
    return Template(read_prompt(version), version)
