"""`Categorize` over one worker's parts."""

from pathlib import Path
from typing import Any

from agents.categories.categorize import Categorize
from agents.categories.matching import CategoryMatcher, CategoryMembers, CategoryVectors
from agents.categories.refresh import CategoryMedoids, RefreshCategories, SummaryModel
from agents.embedding.embed import Embed
from agents.ports.commands import CommandHandler
from agents.rules.index.lexical_document import LexicalDocument
from schemas.internal.events import Embedded, Remembered
from schemas.messages.commands import Command
from schemas.scopes import Scope
from schemas.state.memories import Item, Memory, Origin
from streams.bootstrap.prompts import Prompts
from tests.builders.memories import made
from tests.harnesses.worker import HERE, WorkerHarness

SCOPE = {"user_id": "u1", "project_id": "default"}
DENTIST, PILLS, RENT = "The dentist appointment is on Tuesday.", "Allergic to penicillin.", "The rent is 900 euros."
HEALTH = "dentist appointment, allergic penicillin"


class CategoriesHarness:
    """`Categorize` over a worker; items are stored and embedded as in production."""

    def __init__(self, directory: Path, *, asks: bool = False) -> None:
        self.worker = WorkerHarness(directory)
        self.table = self.worker.categories
        worker, index, spaces = self.worker, self.worker.index, self.worker.spaces
        stores = worker.stores.at(HERE)
        memories, categories = stores.memories, stores.categories
        self.members = CategoryMembers(stores.words)
        self.matcher = CategoryMatcher(categories, memories, self.members, index, spaces, CategoryVectors())
        self.embed = Embed(lambda _: spaces, index, worker.clock, lambda _: self.matcher)
        template = Prompts().of("categorize")
        best = CategoryMedoids(memories, index, spaces)
        model = SummaryModel(worker.language, template) if asks else None
        self.refreshing = RefreshCategories(categories, memories, self.members, best, model)
        self.agent = Categorize(categories, memories, self.members, self.matcher, self.refreshing)

    def put(self, memory: Memory) -> Memory:
        """Write a record and its words."""
        self.worker.words.put(HERE, LexicalDocument(memory))
        self.worker.memories.put(HERE, memory)
        return memory

    async def store_items(self, *texts: str, origin: Origin = "extracted", **fields: Any) -> list[Memory]:
        """Store memories with these texts and their vectors, assigned to matching categories."""
        number = len(list(self.worker.memories.all()))
        kind = "episodic" if origin == "said" else "semantic"
        item = None if origin == "said" else Item()
        known: dict[str, Any] = {"user": "u1", "origin": origin, "type": kind, "item": item}
        some = [
            self.put(made(text, number + place, content_hash=text, **(known | fields)))
            for place, text in enumerate(texts)
        ]
        for memory in some:
            await self.embed_memory(memory)
        return [self.worker.stored(memory) for memory in some]

    async def embed_memory(self, memory: Memory) -> Embedded:
        [report] = await self.embed.write([await self.embed.encode(Remembered(memory=memory), HERE)])
        self.worker.remember.embedded(report)
        return report

    async def command(self, what: str, scope: Scope | None = None, **arguments: Any) -> dict[str, Any]:
        command = Command(command=what, scope=scope or Scope(user_id="u1"), arguments=arguments)
        handler: CommandHandler = getattr(self.agent, what)
        result = await handler(command, 0)
        if result.change is not None:
            list(self.worker.remember.changed(result.change))
        return result.result

    async def member_texts(self, name: str = "health") -> set[str]:
        items = (await self.command("get_category", name=name))["items"]
        return {item["text"] for item in items}
