"""The real parts of a worker, made from the settings: models, indexes, clock, admission. The fakes are in the tests."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dotenv import dotenv_values

from agents.commands.admit import Admit
from agents.ports.embedder import Embedders
from agents.ports.language_model import LanguageModel
from agents.ports.tokenizer import TokenCounter
from agents.ports.vector_index import VectorIndex
from agents.rules.access.limits import RequestLimits
from agents.rules.interaction.classifier import InteractionClassifier
from agents.understanding.interaction_reader import InteractionReader
from schemas.modes import ENGLISH_EMBEDDER, GENERAL_MODE
from streams.adapters.authorization.policy_file import PolicyFile
from streams.adapters.language.endpoint import EndpointDependencies
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.adapters.tokens.tiktoken_counter import TiktokenCounter
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.observability.metrics import Meters
from streams.observability.model_metrics import ModelMeters
from streams.settings import Settings

INTERACTION_MODEL = Path(__file__).parents[2] / "agents" / "data" / "interaction_model.bin"
"""The classifier that comes with the project."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """The time, with its zone UTC."""
        return datetime.now(UTC)


def open_language_models(settings: Settings, meters: Meters) -> LiteLLMModels:
    """The language models of the profiles. Their keys are in the environment, or in a `.env` file beside it."""
    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return LiteLLMModels(
        settings.llm_profiles, ModelMeters(meters.registry), EndpointDependencies(environment={**kept, **os.environ})
    )


def open_admission(settings: Settings) -> Admit:
    """Who lets requests in. Ends the process where there is an authorization file that can't be read."""
    caps = RequestLimits(settings.selector_combinations, settings.most_hits)
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
        from streams.adapters.vectors.server.qdrant_index import QdrantIndex  # noqa: PLC0415

        return QdrantIndex.connect(settings.qdrant_url, api_key=settings.qdrant_api_key, prefix=settings.topic_prefix)
    return EdgeIndex(settings.data_dir / "vectors")


@dataclass(frozen=True, slots=True)
class WorkerModels:
    """What reads and embeds: embedders, language models, and the reader of interaction modes."""

    embedders: Embedders
    language: LanguageModel
    reader: InteractionReader
    tokens: TokenCounter


def build_models(embedders: Embedders, language: LanguageModel) -> WorkerModels:
    """The models of a worker, over these embedders and language models."""
    classifier = InteractionClassifier.loads(INTERACTION_MODEL.read_bytes())
    # What the classifier was fitted to are vectors of this model, in every language.
    read = GENERAL_MODE.model_copy(update={"embedder": ENGLISH_EMBEDDER})
    reader = InteractionReader(lambda: embedders.of(read), classifier)
    return WorkerModels(embedders, language, reader, TiktokenCounter())
