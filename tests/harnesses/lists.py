"""`List` over fakes and a real lexical index."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.retrieval.list_memories import List
from agents.rules.index.lexical_document import LexicalDocument
from schemas.messages.retrieval import ListRequest
from schemas.state.memories import Memory, MemoryExcerpt
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.stores import fake_stores
from tests.fakes.tables.memories import FakeRecords
from tests.fakes.tables.modes import FakeModes


class _ObservedRecords(FakeRecords):
    """Records of which the harness is told which are read whole."""

    def __init__(self, harness: "ListHarness") -> None:
        super().__init__(harness.records)
        self._harness = harness

    def get(self, partition: int, memory_id: str) -> Memory | None:
        self._harness.on_read(memory_id)
        return super().get(partition, memory_id)

    def excerpt(self, partition: int, memory_id: str) -> MemoryExcerpt | None:
        self._harness.on_excerpt(memory_id)
        memory = super().get(partition, memory_id)
        return None if memory is None else MemoryExcerpt.model_validate(memory.model_dump())


@dataclass
class ListHarness:
    directory: Path
    modes: FakeModes = field(default_factory=FakeModes)
    records: dict[str, Memory] = field(default_factory=dict)
    on_read: Callable[[str], object] = lambda _memory_id: None
    on_excerpt: Callable[[str], object] = lambda _memory_id: None

    def __post_init__(self) -> None:
        self.words = SqliteLexicalIndex(self.directory)
        self.words.open(0)
        stores = fake_stores(self.words, _ObservedRecords(self), self.modes).at(0)
        self.list = List(stores.words, stores.memories, stores.modes)

    def store(self, *memories: Memory) -> list[Memory]:
        for memory in memories:
            self.words.put(0, LexicalDocument(memory))
            self.records[memory.memory_id] = memory
        return list(memories)

    def forget(self, memory: Memory) -> None:
        self.words.remove(0, memory.memory_id)
        del self.records[memory.memory_id]

    async def page(self, what: str = "memories", user: str = "ana", project: Any = "*", **fields: Any) -> Any:
        scope = {"user_id": user, "project_id": project}
        asked = ListRequest.model_validate({"scope": scope, "what": what, **fields})
        return (await self.list.answer(asked))[0]

    async def texts(self, **fields: Any) -> list[str]:
        return [item.text for item in (await self.page(**fields)).items]

    async def all(self, what: str = "memories", **fields: Any) -> list[Any]:
        items: list[Any] = []
        cursor = None
        while True:
            page = await self.page(what, cursor=cursor, **fields)
            items += page.items
            cursor = page.next
            if cursor is None:
                return items
            assert page.items
