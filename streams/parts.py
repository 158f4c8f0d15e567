"""The real parts of a worker, made from the settings: models, indexes, publisher. The fakes are in the tests."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from agents.admit import Admit
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
from agents.interaction_reader import InteractionReader
from agents.language_port import LanguageModel
from agents.layers import Layers
from agents.maintain import Maintain
from agents.mode_spaces import ModeSpaces
from agents.ports import Embedders, VectorIndex
from agents.refresh_categories import RefreshCategories, SummaryModel
from agents.remember import Remember
from agents.retrieve import Retrieve
from agents.rules.caps import Caps
from agents.rules.interaction_classifier import InteractionClassifier
from agents.rules.prompting import Template
from agents.rules.ranking import Weights
from agents.suggest_modes import SuggestModes
from agents.token_port import TokenCounter
from agents.understand import Understand
from schemas.modes import ENGLISH, GENERAL_MODE
from streams.adapters.authorization.policy_file import PolicyFile
from streams.adapters.language.endpoint import Outside
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.adapters.language.prompt_files import read_prompt
from streams.adapters.tokens.tiktoken_counter import TiktokenCounter
from streams.adapters.vectors.edge_index import EdgeIndex
from streams.flow.surroundings import Surroundings
from streams.settings import Settings
from streams.topology import Agents
from streams.watching.metrics import Meters
from streams.watching.model_metrics import ModelMeters

RANKING_WEIGHTS = Path(__file__).parents[1] / "agents" / "rules" / "ranking_weights.json"
"""The weights that come with the project."""

INTERACTION_MODEL = Path(__file__).parents[1] / "agents" / "rules" / "interaction_model.bin"
"""The classifier that comes with the project."""

UNDERSTANDING_PROMPT = "understand-1"
"""The version of the prompt that language models are asked by."""

DISTILLING_PROMPT = "distil-1"
"""The version of the prompt by which they distil."""


CATEGORY_PROMPT = "categorize-1"
"""The version of the prompt that language models sum up categories by."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """The time, with its zone UTC."""
        return datetime.now(UTC)


def open_language_models(settings: Settings, meters: Meters) -> LiteLLMModels:
    """The language models of the profiles. Their keys are in the environment, or in a `.env` file beside it."""
    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return LiteLLMModels(
        settings.llm_profiles, ModelMeters(meters.registry), Outside(environment={**kept, **os.environ})
    )


def admission(settings: Settings) -> Admit:
    """Who lets requests in. Ends the process where there is an authorization file that can't be read."""
    caps = Caps(settings.selector_combinations, settings.most_hits)
    if settings.authorization is None:
        return Admit(None, caps)
    try:
        return Admit(PolicyFile.read_from(settings.authorization), caps)
    except (OSError, ValueError) as problem:
        sys.exit(f"setting MODESTREAM_AUTHORIZATION: {problem}")


def open_index(settings: Settings) -> VectorIndex:
    """The Qdrant server that the settings name, or the embedded index in the data directory."""
    if settings.qdrant_url:
        # Its client takes two seconds and a hundred megabytes, which a worker with an index of its own has no use for.
        from streams.adapters.vectors.qdrant_index import QdrantIndex  # noqa: PLC0415

        return QdrantIndex.connect(settings.qdrant_url, api_key=settings.qdrant_api_key, prefix=settings.topic_prefix)
    return EdgeIndex(settings.data_dir / "vectors")


@dataclass(frozen=True, slots=True)
class Models:
    """What reads and embeds: embedders, language models, and the reader of interaction modes."""

    embedders: Embedders
    language: LanguageModel
    reader: InteractionReader
    tokens: TokenCounter


def models_of(embedders: Embedders, language: LanguageModel) -> Models:
    """The models of a worker, over these embedders and language models."""
    classifier = InteractionClassifier.loads(INTERACTION_MODEL.read_bytes())
    # What the classifier was fitted to are vectors of this model, in every language.
    read = GENERAL_MODE.model_copy(update={"embedder": ENGLISH})
    reader = InteractionReader(lambda: embedders.of(read), classifier)
    return Models(embedders, language, reader, TiktokenCounter())


Deployment = Callable[[], dict[str, Any]]
"""How the worker stands, for `health`."""


def agents_of(
    settings: Settings, models: Models, index: VectorIndex, around: Surroundings, deployment: Deployment
) -> Agents:
    """The agents over these parts."""
    weights = Weights.loads((settings.ranking_weights or RANKING_WEIGHTS).read_text())
    memories, words, modes, clock = around.memories, around.words, around.modes, around.clock
    spaces = ModeSpaces(modes, models.embedders)
    template = Template(read_prompt(UNDERSTANDING_PROMPT), UNDERSTANDING_PROMPT)
    bounds = Bounds(settings.consolidation_seconds, settings.consolidation_tokens)
    evolve = Evolve(memories, words)
    distilling = Template(read_prompt(DISTILLING_PROMPT), DISTILLING_PROMPT)
    health = Health(words, modes, spaces, index, around.jobs, deployment, around.meters.usage)
    intend = Intend(around.intentions, memories, clock)
    layers = Layers(intend, around.categories, memories.get)
    retrieve = Retrieve(words, memories.get, index, modes, spaces, clock, weights, layers)
    suggest = SuggestModes(memories.get, words, index, spaces)
    capsules = CategoryCapsules(words, memories.get, around.categories)
    members = CategoryMembers(words)
    fits = CategoryFits(around.categories, memories, members, index, spaces)
    categorize = Categorize(around.categories, memories, members, fits, _refreshing(models, index, around, members))
    return Agents(
        remember=Remember(memories, words, modes, spaces, around.claims, asks_model=len(settings.llm_profiles) > 0),
        embed=Embed(spaces, index, clock, fits),
        understand=Understand(
            models.reader, models.language, template, modes, words, memories.get, clock, around.categories
        ),
        retrieve=retrieve,
        assemble=Assemble(words, memories.get, models.tokens, models.reader.judge, retrieve.turns, capsules),
        govern=Govern(
            memories,
            modes,
            models.embedders,
            health,
            clock,
            {**intend.commands, **categorize.commands, **suggest.commands},
            (intend.before_forgetting, categorize.before_forgetting),
        ),
        intend=intend,
        categorize=categorize,
        maintain=Maintain(memories, words, index, spaces, clock),
        consolidate=Consolidate(memories, words, index, spaces, Distil(models.language, distilling), evolve, bounds),
    )


def _refreshing(
    models: Models, index: VectorIndex, around: Surroundings, members: CategoryMembers
) -> RefreshCategories:
    """Who makes summaries of categories anew."""
    best = BestMembers(around.memories, index, ModeSpaces(around.modes, models.embedders))
    template = Template(read_prompt(CATEGORY_PROMPT), CATEGORY_PROMPT)
    model = SummaryModel(models.language, template)
    return RefreshCategories(around.categories, around.memories, members, best, model)
