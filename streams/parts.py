"""The real parts of a worker, made from the settings: models, indexes, publisher. The fakes are in the tests."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from agents.embed import Embed
from agents.govern import Govern
from agents.ports import Embedder, VectorIndex
from agents.remember import Remember
from agents.retrieve import Retrieve
from agents.rules.ranking import Weights
from schemas.failures import Rejected
from schemas.modes import GENERAL, Mode, VectorSpace
from streams.adapters.embedding.local_model import LocalModel
from streams.adapters.embedding.process_embedder import ProcessEmbedder
from streams.adapters.vectors.edge_index import EdgeIndex
from streams.flow.surroundings import Surroundings
from streams.settings import Settings
from streams.topology import Agents

log = structlog.get_logger()

RANKING_WEIGHTS = Path(__file__).parents[1] / "agents" / "rules" / "ranking_weights.json"
"""The weights that come with the project."""

MINILM = "all-MiniLM-L6-v2"
MINILM_DIM = 384


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """The time, with its zone UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Models:
    """The modes that there are, each with its embedder and space."""

    embedder: Embedder
    general: Mode

    def of(self, mode: str) -> tuple[Embedder, VectorSpace]:
        """The embedder of a mode and the space of its vectors. Raises Rejected for a mode that nobody declared."""
        if mode != self.general.name:
            raise Rejected("unknown_mode", f"the mode {mode[:80]!r} is not declared", "mode")
        return self.embedder, VectorSpace(mode, self.embedder.fingerprint)

    def space(self, mode: str) -> VectorSpace:
        """The space of a mode's vectors."""
        return self.of(mode)[1]


def general_mode() -> Mode:
    """The mode that every user has."""
    description = "Everything that belongs to no other mode"
    return Mode(name=GENERAL, embedder=GENERAL, embedding_dim=MINILM_DIM, description=description, is_default=True)


def start_embedder(settings: Settings) -> ProcessEmbedder:
    """The general embedder; its model is made on the first start, in a few seconds. Nobody uses token vectors yet."""
    precision = settings.embedding_precision
    local = LocalModel(MINILM, settings.models / f"{MINILM}-{precision}", MINILM_DIM, precision, max_tokens=256)
    return ProcessEmbedder.start(local, settings.embedding_threads, export=precision, tokens=False)


def open_index(settings: Settings) -> VectorIndex:
    """The Qdrant server that the settings name, or the embedded index in the data directory."""
    if settings.qdrant_url:
        # Its client takes two seconds and a hundred megabytes, which a worker with an index of its own has no use for.
        from streams.adapters.vectors.qdrant_index import QdrantIndex  # noqa: PLC0415

        return QdrantIndex.connect(settings.qdrant_url, api_key=settings.qdrant_api_key, prefix=settings.topic_prefix)
    return EdgeIndex(settings.data_dir / "vectors")


def agents_of(
    settings: Settings, models: Models, index: VectorIndex, around: Surroundings, standing: Callable[[], dict[str, Any]]
) -> Agents:
    """The agents over these parts."""
    weights = Weights.loads((settings.ranking_weights or RANKING_WEIGHTS).read_text())
    memories, words, clock = around.memories, around.words, around.clock
    return Agents(
        remember=Remember(memories, words),
        embed=Embed(models.of, index, clock),
        retrieve=Retrieve(words, memories.get, index, models.of, clock, weights),
        govern=Govern(memories, words, index, models.space, models.general, standing),
    )
