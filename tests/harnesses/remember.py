"""`Remember` over fakes, on a disk that can be full."""

from datetime import UTC, datetime
from typing import Any, Literal

from agents.memory.remember import TurnResult
from agents.memory.write_memory import finish
from agents.modes.vector_spaces import VectorSpaces
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.internal.events import Embedded, Forgotten, Remembered
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import GENERAL, Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.interactions import FakeInteractions
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

PARTITION = record().partition
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32, decay="slow")

Status = Literal["ready", "failed", "waiting", "stale"]
Follows = Remembered | Forgotten | None


class FullIndex(SqliteLexicalIndex):
    full = False

    def put(self, partition: int, document: LexicalDocument) -> None:
        """Write, or raise Unavailable."""
        if self.full:
            raise Unavailable("the disk is full")
        super().put(partition, document)


class RememberHarness:
    def __init__(self, words: FullIndex) -> None:
        self.memories, self.modes, self.embedders = FakeMemories(), FakeModes(), FakeEmbedders()
        self.interactions = FakeInteractions()
        self.words = words
        stores = fake_stores(words, self.memories, self.modes, interactions=self.interactions).at(PARTITION)
        self.spaces = VectorSpaces(stores.modes, self.embedders)
        self.agent = remember_over(stores, self.embedders)

    def say(self, text: str, offset: int, *, mode: str | None = None, turn_id: str | None = "t") -> TurnResult:
        message = turn(text, turn_id=turn_id, mode=mode)
        return finish(self.agent.turn(message, record(offset=offset)))

    def report_embedded(
        self, of: TurnResult, status: Status = "ready", space: str | None = None, **changes: Any
    ) -> Follows:
        """Report the vector of an event's memory, in the space of its mode by default."""
        assert of.event is not None
        memory = of.event.memory
        message = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            latest=memory.latest,
            mode=memory.mode,
            status=status,
            space=None if status in ("stale", "waiting") else space or self.space_digest(memory.mode),
            at=NOW,
            error="a reason" if status in ("failed", "waiting") else None,
        )
        return self.agent.embedded(message.model_copy(update=changes))

    def space_digest(self, mode: str = GENERAL) -> str:
        found = self.modes.get(PARTITION, "u1").find(mode, "p1")
        assert found is not None
        return FakeEmbedders().of(found).fingerprint.digest

    def memory(self, of: TurnResult) -> Memory:
        memory = self.memories.get(PARTITION, of.result.memory_id)
        assert memory is not None
        return memory

    def count_postings(self, term: str) -> int:
        [found] = self.words.postings(PARTITION, "u1", [term])
        return len(found.numbers)

    def ready_places(self) -> dict[VectorLocation, int]:
        return dict(self.words.ready_places(PARTITION))
