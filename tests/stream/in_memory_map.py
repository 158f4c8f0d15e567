"""The whole map in one process, over topics in memory: the real steps, agents, rules and word index, with fakes for
the model, the vector index, the table and the clock. No broker, no network."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from schemas.records import Headers, Outgoing, Record
from streams.adapters.words.sqlite_words import SqliteWords
from streams.flow.progress import Progress
from streams.flow.surroundings import Surroundings
from streams.kafka_app import kafka_app
from streams.parts import Models, agents_of, general_mode
from streams.settings import Settings
from streams.topics import named
from streams.topology import Agents, connect, steps
from streams.watching.metrics import Meters
from tests.fake_clock import FakeClock
from tests.fake_embedder import FakeEmbedder
from tests.fake_index import FakeIndex
from tests.fake_memories import FakeMemories
from tests.stream.in_memory_publisher import Arrow, InMemoryPublisher
from tests.stream.in_memory_topics import LONGEST_WAIT_SECONDS, InMemoryTopics

Json = dict[str, Any]


@dataclass
class InMemoryMap:
    """Everything of a worker that outlives a restart of its map, and the outsiders' side of the topics."""

    directory: Path
    partitions: int = 4
    clock: FakeClock = field(default_factory=FakeClock)
    index: FakeIndex = field(default_factory=FakeIndex)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    memories: FakeMemories = field(default_factory=FakeMemories)
    meters: Meters = field(default_factory=Meters)
    arrows: set[Arrow] = field(default_factory=set)
    defects: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = Settings(data_dir=self.directory, partitions=self.partitions, _env_file=None)
        self.names = named(self.settings.topic_prefix)
        self.topics = InMemoryTopics(self.names, self.partitions, self.clock)
        self._numbers = count()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["InMemoryMap"]:
        """Run the map until the block ends; its words are not committed then, as if it were killed."""
        words = SqliteWords(self.directory / "words")
        for partition in range(self.partitions):
            words.open(partition)
        app = kafka_app(self.settings, "in-memory")
        readers = self._readers(words)
        channels = {topic: app.channel() for topic in readers}
        connect(app, channels, readers, self.meters, lambda: self.defects.append("an agent ended"))
        app.finalize()
        app.flow_control.resume()
        # Faust's streams note in their consumer what is under way, its C code and its Python; they ask no more of it.
        app.consumer = cast("Any", SimpleNamespace(unacked=set(), _unacked_messages=set()))
        for agent in app.agents.values():
            await agent.start()
        await self.topics.attach(app, channels)
        try:
            yield self
            assert not self.defects
        finally:
            self.topics.detach()
            for agent in app.agents.values():
                await agent.stop()
            for partition in range(self.partitions):
                words.open(partition)
            words.close()

    def wired(self, words: SqliteWords) -> tuple[Agents, Surroundings]:
        """The agents, and what their steps need beside them, the publisher still to be named by its reader."""
        around = Surroundings(
            topics=self.names,
            partitions=self.partitions,
            memories=self.memories,
            words=words,
            progress=Progress(),
            publisher=InMemoryPublisher(self.topics, "", self.arrows),
            clock=self.clock,
            meters=self.meters,
        )
        return agents_of(self.settings, Models(self.embedder, general_mode()), self.index, around, dict), around

    def _readers(self, words: SqliteWords) -> Any:
        """The steps of the map, each with a publisher that knows who writes."""
        agents, around = self.wired(words)
        by_reader = {
            topic: replace(around, publisher=InMemoryPublisher(self.topics, topic, self.arrows))
            for topic in steps(agents, around)
        }
        return {topic: steps(agents, its)[topic] for topic, its in by_reader.items()}

    async def publish(self, topic: str, message: Json | bytes, **how: Any) -> Record:
        """Write a record as a producer does: keyed by its user, unless `how` says another key or partition."""
        value = message if isinstance(message, bytes) else json.dumps(message).encode()
        known = {"key": message["scope"]["user_id"].encode()} if isinstance(message, dict) else {"key": b"u1"}
        return await self.topics.append(Outgoing(topic, value=value, **{**known, **how}))

    async def remember(self, text: str, turn_id: str | None = None, user: str = "u1", **fields: Any) -> Record:
        """Publish one turn."""
        return await self.publish(self.names.turns, turn(text, turn_id or f"t-{next(self._numbers)}", user, **fields))

    async def ask(self, topic: str, message: Json | bytes, headers: Headers = (), **how: Any) -> Json:
        """Publish a request, and wait for its reply."""
        correlation = str(next(self._numbers)).encode()
        ours = (("reply_to", self.names.replies.encode()), ("correlation_id", correlation))
        await self.publish(topic, message, headers=(*ours, *headers), **how)
        await self.topics.until(lambda: bool(self.replies(correlation)))
        [reply] = self.replies(correlation)
        return reply

    async def retrieve(self, query: str, user: str = "u1", **fields: Any) -> Json:
        """Ask for memories."""
        request = {"schema": "retrieve.v1", "scope": {"user_id": user}, "query": query, **fields}
        return await self.ask(self.names.retrieve, request)

    async def command(self, command: str, user: str = "u1", **arguments: Any) -> Json:
        """Give a command."""
        scope = {"user_id": user}
        message = {"schema": "command.v1", "command": command, "scope": scope, "arguments": arguments}
        return await self.ask(self.names.commands, message)

    async def waiting_for(self, what: str) -> None:
        """Wait until the map waits for something unavailable."""
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            while f'what="{what}"'.encode() not in self.meters.exposition():
                await asyncio.sleep(0.01)

    def replies(self, correlation: bytes) -> list[Json]:
        """The replies that came for a request."""
        records = self.topics.records(self.names.replies)
        return [json.loads(one.value or b"") for one in records if one.header("correlation_id") == correlation]

    def dead_letters(self) -> list[Record]:
        """What could not be processed."""
        return self.topics.records(self.names.dead_letters)

    async def texts(self, query: str, **fields: Any) -> list[str]:
        """The texts of what is found, best first, after everything that was written is settled."""
        await self.topics.settled()
        return [hit["text"] for hit in (await self.retrieve(query, **fields))["result"]["hits"]]


def turn(text: str, turn_id: str, user: str = "u1", **fields: Any) -> Json:
    """A turn as it is published."""
    known = {"scope": {"user_id": user}, "conversation_id": "c1", "role": "user", "content": text}
    return {"schema": "turn.v1", "turn_id": turn_id, **known, **fields}
