"""The agents of a worker over its parts: who is given what. They are the same over real parts and over fakes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.assemble import Assemble
from agents.categorize import Categorize
from agents.category_best import BestMembers
from agents.category_capsules import CategoryCapsules
from agents.category_fits import CategoryFits
from agents.category_members import CategoryMembers
from agents.consolidate import Bounds, Consolidate
from agents.distil import Distil
from agents.embed import Embed
from agents.evolve import Evolve
from agents.govern import Govern
from agents.health import Health
from agents.intend import Intend
from agents.layers import Layers
from agents.maintain import Maintain
from agents.mode_spaces import ModeSpaces
from agents.ports import VectorIndex
from agents.refresh_categories import RefreshCategories, SummaryModel
from agents.remember import Remember
from agents.retrieve import Retrieve
from agents.rules.prompting import Template
from agents.rules.ranking import Weights
from agents.suggest_modes import SuggestModes
from agents.understand import Understand
from streams.adapters.language.prompt_files import read_prompt
from streams.flow.surroundings import Surroundings
from streams.parts import Models
from streams.settings import Settings
from streams.topology import Agents

RANKING_WEIGHTS = Path(__file__).parents[1] / "agents" / "rules" / "ranking_weights.json"
"""The weights that come with the project."""

UNDERSTANDING_PROMPT = "understand-1"
"""The version of the prompt that language models are asked by."""

DISTILLING_PROMPT = "distil-1"
"""The version of the prompt by which they distil."""

CATEGORY_PROMPT = "categorize-1"
"""The version of the prompt that language models sum up categories by."""

Deployment = Callable[[], dict[str, Any]]
"""How the worker stands, for `health`."""


def agents_of(
    settings: Settings, models: Models, index: VectorIndex, around: Surroundings, deployment: Deployment
) -> Agents:
    """The agents over these parts."""
    weights = Weights.loads((settings.ranking_weights or RANKING_WEIGHTS).read_text())
    memories, words, modes, clock = around.memories, around.words, around.modes, around.clock
    spaces, asks_model = ModeSpaces(modes, models.embedders), len(settings.llm_profiles) > 0
    intend = Intend(around.intentions, memories, clock)
    layers = Layers(intend, around.categories, memories.get)
    retrieve = Retrieve(words, memories.get, index, modes, spaces, clock, weights, layers)
    capsules = CategoryCapsules(words, memories.get, around.categories)
    members = CategoryMembers(words)
    fits = CategoryFits(around.categories, memories, members, index, spaces)
    refreshing = _refreshing(models, index, around, members, spaces)
    categorize = Categorize(around.categories, memories, members, fits, refreshing)
    suggest = SuggestModes(memories.get, words, index, spaces)
    return Agents(
        remember=Remember(memories, words, modes, spaces, around.claims, asks_model=asks_model),
        embed=Embed(spaces, index, clock, fits),
        understand=Understand(
            models.reader,
            models.language,
            _template(UNDERSTANDING_PROMPT),
            modes,
            words,
            memories.get,
            clock,
            around.categories,
        ),
        retrieve=retrieve,
        assemble=Assemble(
            words, memories.get, models.tokens, models.reader.judge, retrieve.turns, capsules, asks_model=asks_model
        ),
        govern=Govern(
            memories,
            modes,
            models.embedders,
            Health(words, modes, spaces, index, around.jobs, deployment, around.meters.usage),
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
            Distil(models.language, _template(DISTILLING_PROMPT)),
            Evolve(memories, words),
            Bounds(settings.consolidation_seconds, settings.consolidation_tokens),
        ),
    )


def _refreshing(
    models: Models, index: VectorIndex, around: Surroundings, members: CategoryMembers, spaces: ModeSpaces
) -> RefreshCategories:
    """Who makes summaries of categories anew."""
    best = BestMembers(around.memories, index, spaces)
    model = SummaryModel(models.language, _template(CATEGORY_PROMPT))
    return RefreshCategories(around.categories, around.memories, members, best, model)


def _template(version: str) -> Template:
    return Template(read_prompt(version), version)
