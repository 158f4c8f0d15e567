"""Build the real adapters of a worker from the settings: models, indexes, clock, admission. Tests use fakes."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from dotenv import dotenv_values

from agents.commands.admit import Admit
from agents.ports.indexes import VectorIndexes
from agents.ports.models import CrossEncoder, Embedders, LanguageModel, TokenCounter
from agents.rules.access.grants import RequestLimits
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.interaction.classifier import InteractionClassifier
from agents.understanding.interaction_reader import InteractionReader
from schemas.state.modes import ENGLISH_EMBEDDER, GENERAL_MODE
from schemas.state.policies import open_grants
from streams.adapters.embedding.catalog.fetching import FetchLimits
from streams.adapters.embedding.catalog.local_cross_encoder import LocalCrossEncoder
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
from streams.adapters.language.endpoint import EndpointDependencies
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.adapters.policy_file import PolicyFile
from streams.adapters.tiktoken_counter import TiktokenCounter
from streams.adapters.vectors.embedded.edge_index import EdgeResources, PartitionedIndex
from streams.adapters.vectors.none import NoVectors
from streams.foreground import Foreground
from streams.observability.metrics import Meters, ModelMeters
from streams.runtime.fence import running_time
from streams.settings import Settings

DATA = Path(__file__).parents[2] / "agents" / "data"
INTERACTION_MODEL, MODE_TAXONOMY = DATA / "interaction_model.bin", DATA / "mode_taxonomy.json"
"""The project's classifier and tables."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def steady_s(self) -> float:
        """Return seconds since the start of the machine."""
        return running_time()


def open_embedders(settings: Settings) -> EmbedderRegistry:
    """Open the embedders of the settings; starts to load the general model in the background."""
    return EmbedderRegistry.open(
        settings.models,
        settings.embedder_dir,
        settings.embedders,
        settings.embedding_precision,
        threads=settings.embedding_threads,
        presets=settings.presets,
        idle_s=60 * settings.embedder_idle_minutes,
        any_model=settings.embedders_allowed == "any",
        limits=FetchLimits(
            max_model_bytes=settings.fetch_max_model_mb * 1_000_000,
            max_models=settings.fetch_max_models,
            max_total_bytes=settings.fetch_max_total_mb * 1_000_000,
        ),
    )


def open_cross_encoder(settings: Settings) -> LocalCrossEncoder:
    """Open the cross-encoder; the first request that needs it loads its model."""
    return LocalCrossEncoder(settings.embedder_dir, settings.embedding_threads, 60 * settings.embedder_idle_minutes)


def open_language_models(settings: Settings, meters: Meters) -> LiteLLMModels:
    """Open the language models of the profiles. Their keys come from the environment, or else from a `.env` file."""
    dotenv = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return LiteLLMModels(
        settings.llm_profiles, ModelMeters(meters.registry), EndpointDependencies(environment={**dotenv, **os.environ})
    )


def open_file_reader(settings: Settings, language: LanguageModel) -> ProcessFileReader:
    """Open the reader of files; its processes start with the first one."""
    limits = ReadLimits(
        processes=settings.file_processes,
        characters=settings.file_characters,
        seconds=settings.file_seconds,
        memory_bytes=settings.file_memory_mb << 20,
    )
    return ProcessFileReader(limits, language)


def open_admission(settings: Settings) -> Admit:
    """Build the admission of requests. Ends the process if the authorization file can't be read."""
    limits = RequestLimits(settings.selector_combinations, settings.most_hits)
    try:
        grants = open_grants(settings.authorization, settings.authorizer, settings.scope_model)
    except OSError as problem:
        sys.exit(f"setting MODESTREAM_AUTHORIZATION: {problem}")
    except ValueError as problem:
        sys.exit(str(problem))
    return Admit(None if grants is None else PolicyFile(grants), limits)


def open_taxonomy(settings: Settings) -> ModeTaxonomy:
    """Read the tables of the interaction modes. Ends the process if the file can't be read."""
    path = settings.taxonomy or MODE_TAXONOMY
    try:
        return ModeTaxonomy.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        sys.exit(f"setting MODESTREAM_TAXONOMY: {path}: {problem}")


def open_indexes(settings: Settings, foreground: Foreground, is_held: Callable[[int], bool]) -> VectorIndexes:
    """Open the Qdrant server of the settings, or the embedded indexes of held partitions; or none.

    While they open collections they give way to the requests of `foreground`.
    """
    if settings.vector_index_kind == "none":
        return NoVectors()
    if settings.qdrant_url:
        # Importing its client takes two seconds and a hundred megabytes, which a worker with an embedded index saves.
        from streams.adapters.vectors.server.qdrant_index import QdrantIndex  # noqa: PLC0415
        from streams.adapters.vectors.server.stored_points import ServerStorage  # noqa: PLC0415

        return QdrantIndex.connect(
            settings.qdrant_url,
            api_key=None if settings.qdrant_api_key is None else settings.qdrant_api_key.get_secret_value(),
            prefix=settings.topic_prefix,
            grpc_port=settings.qdrant_grpc_port or None,
            storage=ServerStorage(settings.qdrant_on_disk, settings.qdrant_quantised),
        )
    return PartitionedIndex(settings.data_dir / "vectors", EdgeResources(until_quiet=foreground.until_quiet), is_held)


@dataclass(frozen=True, slots=True)
class WorkerModels:
    """The models of a worker: embedders, language models, cross-encoder, classifier of interaction modes, tokenizer.

    `taxonomy` has the tables of the interaction modes.
    """

    embedders: Embedders
    language: LanguageModel
    cross_encoder: CrossEncoder
    reader: InteractionReader
    tokens: TokenCounter
    taxonomy: ModeTaxonomy


@cache
def shipped_classifier() -> InteractionClassifier:
    """Load the project's classifier, once in a process: it never changes."""
    return InteractionClassifier.loads(INTERACTION_MODEL.read_bytes())


def build_models(
    embedders: Embedders, language: LanguageModel, cross_encoder: CrossEncoder, taxonomy: ModeTaxonomy
) -> WorkerModels:
    # The classifier was trained on vectors of this model, in every language.
    classified_mode = GENERAL_MODE.model_copy(update={"embedder": ENGLISH_EMBEDDER})
    reader = InteractionReader(lambda: embedders.of(classified_mode), shipped_classifier(), taxonomy)
    return WorkerModels(embedders, language, cross_encoder, reader, TiktokenCounter(), taxonomy)
