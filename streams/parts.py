"""The real parts of a worker, made from the settings: models, indexes, clock, admission. The fakes are in the tests."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dotenv import dotenv_values

from agents.admit import Admit
from agents.interaction_reader import InteractionReader
from agents.language_port import LanguageModel
from agents.ports import Embedders, VectorIndex
from agents.rules.caps import Caps
from agents.rules.interaction_classifier import InteractionClassifier
from agents.token_port import TokenCounter
from schemas.modes import ENGLISH, GENERAL_MODE
from streams.adapters.authorization.policy_file import PolicyFile
from streams.adapters.language.endpoint import Outside
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.adapters.tokens.tiktoken_counter import TiktokenCounter
from streams.adapters.vectors.edge_index import EdgeIndex
from streams.settings import Settings
from streams.watching.metrics import Meters
from streams.watching.model_metrics import ModelMeters

INTERACTION_MODEL = Path(__file__).parents[1] / "agents" / "rules" / "interaction_model.bin"
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
