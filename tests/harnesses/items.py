"""A keeper of turns and their items over fakes, and what is said to it."""

from typing import Any

from agents.memory.items import MemoryEvent
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
"""Three that say something else of the same."""

PLAIN = "Chapter one tells of the lantern."


class ItemsHarness:
    """A keeper with its tables; `events` is all that followed, in order."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.words, self.claims, self.modes = FakeMemories(), words, FakeClaims(), FakeModes()
        self.stores = fake_stores(words, self.memories, self.modes, self.claims).at(HERE)
        self.keeper = remember_over(self.stores, FakeEmbedders())
        self.events: list[MemoryEvent] = []

    def say(self, text: str, number: int, offset: int | None = None, **fields: Any) -> Memory:
        """Have a turn said at this minute, unless `fields` say otherwise; returns it as it is then."""
        known = {"turn_id": f"t{number}", "occurred_at": f"2026-03-01T09:{number:02}:00Z"}
        said = turn(text, **(known | fields))
        accepted = self.keeper.turn(said, record(offset=number if offset is None else offset))
        self.events = accepted.events
        return self.get(accepted.result.memory_id)

    def read(self, said: Memory, found: Understanding | None) -> Memory:
        """Have a language model answer about a turn."""
        event = Understood(
            memory_id=said.memory_id,
            text_hash=said.versions[said.current].text_hash,
            found=found,
            profile="default",
            prompt="p",
            at=FakeClock().now(),
        )
        self.events = self.keeper.understood(event).events
        return self.get(said.memory_id)

    def change(self, action: Any, **fields: Any) -> int:
        """Carry out a change; returns how many memories are gone by it."""
        change = Change(scope=Scope(user_id="u1", project_id="p1"), action=action, **fields)
        self.events = [event for _, events in self.keeper.changed(change) for event in events]
        return sum(isinstance(event, Forgotten) for event in self.events)

    def get(self, memory_id: str) -> Memory:
        """A record that is there."""
        memory = self.memories.get(HERE, memory_id)
        assert memory is not None
        return memory

    def write(self, memory: Memory) -> Memory:
        """Have this record."""
        self.words.put(HERE, LexicalDocument(memory))
        self.memories.put(HERE, memory)
        return memory

    def items(self) -> dict[str, Memory]:
        """All items by their texts; the words agree with the records."""
        there = list(self.memories.all())
        for shelf in index_names("u1"):
            ids = {one.memory_id for one in there if one.index_name == shelf}
            assert set(self.words.memory_columns(HERE, shelf).number_of) == ids
        return {one.text: one for one in there if one.origin == "extracted"}

    def state(self) -> tuple[dict[str, str], dict[tuple[int, str], str]]:
        """Everything that is kept."""
        return {one.memory_id: one.model_dump_json() for one in self.memories.all()}, dict(self.claims.kept)

    def told(self, kind: type[Any]) -> list[Any]:
        """What followed of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


def sources(item: Memory) -> list[str]:
    """The turns that an item rests on."""
    return [one.turn_id for one in item.evidence]


def known(item: Memory) -> Item:
    """What is known of an item."""
    assert item.item is not None
    return item.item
