"""`Retrieve` over fakes and a real lexical index."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from agents.modes.vector_spaces import VectorSpaces, encode_memory
from agents.retrieval.drill_down import DrillDown
from agents.retrieval.retrieve import Retrieve, Warnings
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.ranking.features import RankingWeights
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.models.vectors import Encoded, Point, Scored
from schemas.scopes import Selector
from schemas.state.memories import Embedding, Memory, VectorLocation
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.pipelines.in_force import shipped_pipelines
from tests.builders.memories import START
from tests.builders.stores import fake_stores
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.categories import FakeCategories
from tests.fakes.tables.intentions import FakeIntentions
from tests.fakes.tables.memories import FakeRecords
from tests.fakes.tables.modes import FakeModes
from tests.fakes.vector_index import FakeIndex

WEIGHTS = Path(__file__).parents[2] / "agents" / "data" / "ranking_weights.json"


@dataclass
class FixedClock:
    time: datetime = START + timedelta(days=20)

    def now(self) -> datetime:
        return self.time


class InterruptedIndex(FakeIndex):
    """A vector index that runs a callback during searches. `searched` are the queried spaces."""

    meanwhile: Callable[[], object] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[VectorSpace] = []

    async def search(self, space: VectorSpace, *asked: Any, **named: Any) -> Sequence[Scored]:
        self.searched.append(space)
        if self.meanwhile is not None:
            self.meanwhile()
        return await super().search(space, *asked, **named)


def without_tokens(encoded: Encoded) -> Encoded:
    cut = encoded.passages
    passages = None if cut is None else replace(cut, token_counts=np.zeros_like(cut.token_counts))
    return replace(encoded, tokens=encoded.tokens[:0], passages=passages)


@dataclass
class RetrievalHarness:
    words: SqliteLexicalIndex
    vectors: InterruptedIndex = field(default_factory=InterruptedIndex)
    embedders: FakeEmbedders = field(default_factory=FakeEmbedders)
    modes: FakeModes = field(default_factory=FakeModes)
    clock: FixedClock = field(default_factory=FixedClock)
    records: dict[str, Memory] = field(default_factory=dict)
    intentions: FakeIntentions = field(default_factory=FakeIntentions)
    categories: FakeCategories = field(default_factory=FakeCategories)
    has_tokens: bool = False
    """Memories are stored with token vectors."""
    searched_before_pauses: list[int] = field(default_factory=list)
    """How many spaces were queried when a question gave way."""

    async def _give_way(self, _worked_s: float) -> None:
        self.searched_before_pauses.append(len(self.vectors.searched))

    def __post_init__(self) -> None:
        weights = RankingWeights.loads(WEIGHTS.read_text())
        memories = FakeRecords(self.records)
        self.stores = stores = fake_stores(
            self.words, memories, self.modes, intentions=self.intentions, categories=self.categories
        ).at(0)
        self.spaces = VectorSpaces(stores.modes, self.embedders)
        layers = DrillDown(stores.words, stores.intentions, stores.categories, stores.memories)
        self.retrieve = Retrieve(
            stores.words,
            stores.memories,
            self.vectors,
            stores.modes,
            self.spaces,
            self.clock,
            weights,
            layers,
            shipped_pipelines().current,
            give_way=self._give_way,
        )

    async def remember(self, *memories: Memory) -> list[Memory]:
        stored = self.store(*(self._ready(memory) for memory in memories))
        await self.embed(*stored)
        return stored

    def _ready(self, memory: Memory) -> Memory:
        digest = self.spaces.of(memory)[1].fingerprint.digest
        ready = Embedding(status="ready", place=VectorLocation(mode=memory.mode, space=digest))
        return memory.model_copy(update={"embedding": ready})

    def store(self, *memories: Memory) -> list[Memory]:
        """Store memories without vectors."""
        for memory in memories:
            self.words.put(0, LexicalDocument(memory))
            self.records[memory.memory_id] = memory
        return list(memories)

    async def embed(self, *memories: Memory) -> None:
        """Write only the vectors."""
        for memory in memories:
            embedder, space = self.spaces.of(memory)
            encoded = await encode_memory(embedder, memory)
            if not self.has_tokens:
                encoded = without_tokens(encoded)
            point = Point(
                memory_id=memory.memory_id,
                vector=encoded.pooled,
                boundary=memory.index_name,
                partition=0,
                scope=memory.scope,
                mode=memory.mode,
                type=memory.type,
                occurred_ms=memory.occurred_ms,
                content_hash=memory.content_hash,
                tokens=encoded.tokens,
                passages=encoded.passages,
            )
            await self.vectors.upsert(space, [point])

    async def ask(
        self, query: str, user: str = "ana", project: str | list[str] = "*", **fields: Any
    ) -> tuple[RetrieveResult, Warnings]:
        selector = Selector.model_validate({"user_id": user, "project_id": project})
        return await self.retrieve.answer(RetrieveRequest(scope=selector, query=query, **fields))

    async def texts(self, query: str, **fields: Any) -> list[str]:
        return [hit.text for hit in (await self.ask(query, **fields))[0].hits]
