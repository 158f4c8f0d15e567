"""`Remember` over fakes, for tests of extracted items."""

from typing import Any

from agents.memory.items import MemoryEvent
from agents.memory.write_memory import finish
from agents.rules.index.lexical_document import LexicalDocument
from schemas.internal.changes import Change
from schemas.internal.events import Forgotten, Understood
from schemas.scopes import Scope
from schemas.state.memories import Item, Memory, index_names
from schemas.state.understanding import Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.claims import FakeClaims
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

HERE = record().partition
FLY, AWS, LOCAL = "The deploy target is fly.io now.", "The deploy target is AWS.", "The deploy target is port 81."
"""Three contradicting values of one claim."""

PLAIN = "Chapter one tells of the lantern."


class ItemsHarness:
    """`Remember` with its stores; `events` are those of the last call, in order."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.words, self.claims, self.modes = FakeMemories(), words, FakeClaims(), FakeModes()
        self.stores = fake_stores(words, self.memories, self.modes, self.claims).at(HERE)
        self.agent = remember_over(self.stores, FakeEmbedders())
        self.events: list[MemoryEvent] = []

    def say(self, text: str, number: int, offset: int | None = None, **fields: Any) -> Memory:
        """Remember a turn of minute `number`, unless `fields` say otherwise, and return its memory."""
        known = {"turn_id": f"t{number}", "occurred_at": f"2026-03-01T09:{number:02}:00Z"}
        message = turn(text, **(known | fields))
        accepted = finish(self.agent.turn(message, record(offset=number if offset is None else offset)))
        self.events = accepted.events
        return self.get(accepted.result.memory_id)

    def understand(self, message: Memory, found: Understanding | None) -> Memory:
        """Apply a language model's answer about a turn."""
        event = Understood(
            memory_id=message.memory_id,
            text_hash=message.versions[message.current].text_hash,
            found=found,
            profile="default",
            prompt="p",
            at=FakeClock().now(),
        )
        self.events = finish(self.agent.understood(event)).events
        return self.get(message.memory_id)

    def change(self, action: Any, **fields: Any) -> int:
        """Apply a change and return how many memories it forgets."""
        change = Change(scope=Scope(user_id="u1", project_id="p1"), action=action, **fields)
        self.events = [event for _, events in self.agent.changed(change) for event in events]
        return sum(isinstance(event, Forgotten) for event in self.events)

    def get(self, memory_id: str) -> Memory:
        memory = self.memories.get(HERE, memory_id)
        assert memory is not None
        return memory

    def write(self, memory: Memory) -> Memory:
        self.words.put(HERE, LexicalDocument(memory))
        self.memories.put(HERE, memory)
        return memory

    def items(self) -> dict[str, Memory]:
        """Return all items by text, after checking the lexical index against the records."""
        memories = list(self.memories.all())
        for index_name in index_names("u1"):
            ids = {each.memory_id for each in memories if each.index_name == index_name}
            assert set(self.words.memory_columns(HERE, index_name).number_of) == ids
        return {memory.text: memory for memory in memories if memory.origin == "extracted"}

    def state(self) -> tuple[dict[str, str], dict[tuple[int, str], str]]:
        return {memory.memory_id: memory.model_dump_json() for memory in self.memories.all()}, dict(self.claims.stored)

    def events_of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def sources(item: Memory) -> list[str]:
    return [span.turn_id for span in item.evidence]


def known(item: Memory) -> Item:
    assert item.item is not None
    return item.item
