"""The keeper of memories over fakes, on a disk that can be full."""

from datetime import UTC, datetime
from typing import Any, Literal

from agents.memory.remember import TurnResult
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
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

PARTITION = record().partition
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32, decay="slow")

Status = Literal["ready", "failed", "waiting", "stale"]
Follows = Remembered | Forgotten | None


class FullIndex(SqliteLexicalIndex):
    """The word index, on a disk that can be full."""

    full = False

    def put(self, partition: int, document: LexicalDocument) -> None:
        """Write, if there is room."""
        if self.full:
            raise Unavailable("the disk is full")
        super().put(partition, document)


class RememberHarness:
    """The keeper with what it keeps."""

    def __init__(self, words: FullIndex) -> None:
        self.memories, self.modes, self.embedders = FakeMemories(), FakeModes(), FakeEmbedders()
        self.words = words
        stores = fake_stores(words, self.memories, self.modes).at(PARTITION)
        self.spaces = VectorSpaces(stores.modes, self.embedders)
        self.keeper = remember_over(stores, self.embedders)

    def tell(self, text: str, offset: int, *, mode: str | None = None, turn_id: str | None = "t") -> TurnResult:
        """A turn, as the record at this offset."""
        said = turn(text, turn_id=turn_id, mode=mode)
        return self.keeper.turn(said, record(offset=offset))

    def embedded(self, of: TurnResult, status: Status = "ready", space: str | None = None, **changes: Any) -> Follows:
        """What the indexer says of the vector of an event's memory; in the space of its mode unless told otherwise."""
        assert of.event is not None
        memory = of.event.memory
        said = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status=status,
            space=None if status in ("stale", "waiting") else space or self.space(memory.mode),
            at=NOW,
            error="a reason" if status in ("failed", "waiting") else None,
        )
        return self.keeper.embedded(said.model_copy(update=changes))

    def space(self, mode: str = GENERAL) -> str:
        """The digest of the space of a mode, if its model were loaded."""
        found = self.modes.get(PARTITION, "u1").find(mode, "p1")
        assert found is not None
        return FakeEmbedders().of(found).fingerprint.digest

    def memory(self, of: TurnResult) -> Memory:
        """The record as it stands."""
        memory = self.memories.get(PARTITION, of.result.memory_id)
        assert memory is not None
        return memory

    def finds(self, term: str) -> int:
        """How many memories have this word."""
        [found] = self.words.postings(PARTITION, "u1", [term])
        return len(found.numbers)

    def ready(self) -> dict[VectorLocation, int]:
        """How many memories count as embedded in the word index, by place."""
        return dict(self.words.ready_places(PARTITION))
