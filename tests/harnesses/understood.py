"""`Remember` with one turn of a user, and answers of a language model about it."""

from datetime import timedelta
from typing import Any

from agents.memory.understood import UnderstoodResult
from agents.memory.write_memory import finish
from agents.modes.vector_spaces import VectorSpaces
from agents.rules.memory.understanding import current_text_hash
from schemas.internal.events import Embedded, Refresh, Understood
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from schemas.state.modes import Mode, ModeDeclarations
from schemas.state.understanding import Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import START
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.categories import FakeCategories
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

PARTITION = record().partition
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32, decay="fast")
DIARY = Mode(name="diary", embedder="general", embedding_dim=384, decay="slow", formerly=("journal",))
THEIRS = Mode(name="theirs", embedder="tiny32", embedding_dim=32, project="p9")


class UnderstoodHarness:
    """`Remember` with one memory of a user with declared modes."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.modes = FakeMemories(), FakeModes()
        self.words = words
        self.categories = FakeCategories({"music": "violins", "food": "soup", "pets": "cats"})
        stores = fake_stores(words, self.memories, self.modes, categories=self.categories).at(PARTITION)
        self.spaces = VectorSpaces(stores.modes, FakeEmbedders())
        self.agent = remember_over(stores, FakeEmbedders(), asks_model=True)
        self.declare(CODE, DIARY, THEIRS)

    def declare(self, *modes: Mode, **fields: Any) -> None:
        self.modes.put(PARTITION, "u1", ModeDeclarations(modes=modes, **fields))

    def say(self, text: str = "violin", offset: int = 1, mode: str | None = None) -> Memory:
        event = finish(self.agent.turn(turn(text, turn_id="t", mode=mode), record(offset=offset))).event
        assert event is not None
        return event.memory

    def embed(self, memory: Memory) -> Memory:
        event = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status="ready",
            space=self.spaces.of(memory)[1].fingerprint.digest,
            at=START,
        )
        assert self.agent.embedded(event) is None
        return self.memory(memory)

    def understood(
        self, of: Memory, valid: bool = True, job: str | None = None, minutes: int = 0, **found: Any
    ) -> UnderstoodResult:
        """Apply a model's answer about the memory's text; `job` has it understood again, some minutes later."""
        event = Understood(
            memory_id=of.memory_id,
            text_hash=current_text_hash(of),
            found=Understanding(**found) if valid else None,
            interaction=Interaction(mode="LEARNING", confidence=0.9),
            profile="small",
            prompt="understand-1",
            at=START + timedelta(minutes=minutes),
            tokens=7,
            revision=0 if job is None else 3,
            refresh=None if job is None else Refresh(job_id=job),
        )
        return finish(self.agent.understood(event))

    def items(self, of: Memory) -> dict[str, Memory]:
        found = [self.memories.get(PARTITION, item) for item in self.memory(of).items]
        return {each.text: each for each in found if each is not None}

    def memory(self, of: Memory) -> Memory:
        memory = self.memories.get(PARTITION, of.memory_id)
        assert memory is not None
        return memory
