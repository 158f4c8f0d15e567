"""`Assemble` over fakes and a real lexical index."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from modestream_client.contexts import AssembleResult
from modestream_client.hits import Passage

from agents.context.assemble import Assemble, ContextLimits, Warnings
from agents.context.snapshot import CategorySummaries, SnapshotReader
from agents.ports.models import TokenCounter
from agents.rules.answer.hits import hit_of
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.interaction.stability import Stability, assume_stable
from schemas.failures import ModelMissing
from schemas.messages.assemble import AssembleRequest
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.pipelines.in_force import shipped_pipelines
from tests.builders.memories import made
from tests.builders.stores import fake_stores
from tests.builders.taxonomies import SHIPPED
from tests.fakes.clock import FakeClock
from tests.fakes.tables.memories import FakeRecords
from tests.fakes.tokenizer import FakeTokens


@dataclass
class FakeSearch:
    """A search that returns these memories for every query, best first."""

    memories: list[Memory] = field(default_factory=list)
    warnings: Warnings = field(default_factory=list)
    asked: list[RetrieveRequest] = field(default_factory=list)
    passages: dict[str, tuple[Passage, ...]] = field(default_factory=dict)
    """Of memories by id, best first."""

    async def __call__(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        self.asked.append(request)
        hits = [
            hit_of(memory, max(0.9 * 0.8**place, 0.01)).model_copy(
                update={"passages": self.passages.get(memory.memory_id, ())}
            )
            for place, memory in enumerate(self.memories[: request.top_k])
        ]
        return RetrieveResult(hits=hits, modes=["general"], strategy="hybrid"), self.warnings


@dataclass
class ContextHarness:
    words: SqliteLexicalIndex
    tokens: TokenCounter = field(default_factory=FakeTokens)
    search: FakeSearch = field(default_factory=FakeSearch)
    judge_outage: bool = False
    records: dict[str, Memory] = field(default_factory=dict)
    judged: list[tuple[str, list[str]]] = field(default_factory=list)
    capsules: CategorySummaries | None = None
    asks_model: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    limits: ContextLimits = field(default_factory=ContextLimits)
    stability: Stability = field(default_factory=assume_stable)
    taxonomy: ModeTaxonomy = SHIPPED

    def __post_init__(self) -> None:
        self.stores = fake_stores(self.words, FakeRecords(self.records)).at(0)
        self.assemble = Assemble(
            self.stores.words,
            self.stores.memories,
            self.tokens,
            self._judge,
            self.search,
            SnapshotReader(
                self.stores.words, self.stores.memories, self.taxonomy, self.capsules, asks_model=self.asks_model
            ),
            self.clock,
            self.limits,
            self.taxonomy,
            shipped_pipelines().current,
            lambda _: self.stability,
        )

    async def _judge(self, request: AssembleRequest, turns: Sequence[Memory]) -> Interaction:
        if self.judge_outage:
            raise ModelMissing("the general embedder still loads")
        self.judged.append((request.query, [turn.text for turn in turns]))
        return Interaction(mode="EXPLORATION", confidence=0.8)

    def store(self, *memories: Memory) -> list[str]:
        for memory in memories:
            self.words.put(0, LexicalDocument(memory))
            self.records[memory.memory_id] = memory
        return [memory.memory_id for memory in memories]

    async def ask(
        self, user: str = "ana", project: str | list[str] = "default", **fields: Any
    ) -> tuple[AssembleResult, Warnings]:
        request = {
            "scope": {"user_id": user, "project_id": project},
            "conversation_id": "c1",
            "query": "and now?",
            "format": "full",
        }
        return await self.assemble.answer(AssembleRequest.model_validate_json(json.dumps(request | fields)))

    async def assemble_context(self, **fields: Any) -> AssembleResult:
        return (await self.ask(**fields))[0]


def memories(result: AssembleResult) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(result.messages[1].content.partition("\n")[2])["memories"]
    return found


def contents(result: AssembleResult) -> list[str]:
    return [memory["content"] for memory in memories(result)]


def chatter(count: int, words: int = 30, first: int = 0, **fields: Any) -> list[Memory]:
    """Return `count` turns of `words` words, oldest first; `first` is the minute of the oldest."""
    numbers = range(first, first + count)
    return [made(f"Remark {number}" + " island" * (words - 2), number, **fields) for number in numbers]
