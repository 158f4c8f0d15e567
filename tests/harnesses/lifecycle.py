"""The keeper, the indexer and the commands over fakes, wired by a loop that a test drives event by event.

Enters: what users, clients and models do, and when each reader takes its next event. Every topic by itself is in
order; across topics any order may be had. A reader may be set back, as Kafka delivers again what was not acknowledged,
and it may be killed after it has written its own state and before anything that follows has left.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from agents.commands.handle_commands import HandleCommands
from agents.embedding.embed import Embed
from agents.memory.items import MemoryEvent, WriteStep
from agents.memory.recovery import find_removed_but_indexed
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.command_types import CommandHandler, CommandResult
from agents.rules.text.embedding_text import embedding_text
from schemas.failures import ModelMissing, Rejected
from schemas.internal.events import Embedded, Forgotten, Remembered
from schemas.messages.commands import Command
from schemas.messages.turns import Turn
from schemas.models.vectors import Point, Vector
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import GENERAL
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record
from tests.fakes.clock import FakeClock
from tests.fakes.rejecting import RejectingEmbedders, RejectingIndex
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes
from tests.harnesses.lifecycle_indexer import LifecycleIndexer, Topic
from tests.harnesses.lifecycle_user import PARTITION, LifecycleUser

EMBEDDERS = (GENERAL, "tiny32", "tiny48")
MOST_EVENTS = 2000
"""Events after which what should come to rest is taken for endless."""

Result = TypeVar("Result")


class LifecycleHarness(LifecycleUser):
    """One user's memories in every declared mode, and the agents that handle the user's records."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        """Take a word index; what it holds is deleted."""
        self.loop = asyncio.new_event_loop()
        topics = {name: Topic() for name in ("turns", "commands", "changes", "understood", "embedded")}
        super().__init__(topics, FakeMemories(), FakeClock())
        self.modes, self.index = FakeModes(), RejectingIndex()
        self.embedders, self.words = RejectingEmbedders(), words
        self.words.drop(PARTITION)
        self.words.open(PARTITION)
        self.stores = fake_stores(words, self.memories, self.modes).at(PARTITION)
        self.spaces = VectorSpaces(self.stores.modes, self.embedders)
        self.remember = remember_over(self.stores, self.embedders, asks_model=True)
        embed = Embed(lambda _: self.spaces, self.index, self.clock)
        self.commands = HandleCommands(
            PARTITION, self.stores.memories, self.stores.modes, self.embedders, self._no_health, self.clock
        )
        told = self.topics["embedded"].events
        self.vectors = LifecycleIndexer(embed, PARTITION, self.loop, told)
        self.is_to_look = False
        self._carrying: Iterator[WriteStep] | None = None

    # What happens around it.

    def nothing(self) -> None:
        """Let nothing happen."""

    def down(self) -> None:
        """Take the vector index away."""
        self.index.down()

    def up(self) -> None:
        """Give it back."""
        self.index.up()

    def missing(self, embedder: str) -> None:
        """Take a model away."""
        self.embedders.missing(embedder)

    def load(self, embedder: str) -> None:
        """Let a model be there."""
        self.embedders.load(embedder)
        self.is_to_look = True

    # What the readers do.

    def read(self, name: str, *, killed: bool = False) -> None:
        """Let the reader of a topic handle its next event; killed, its state is written and nothing else."""
        topic = self.topics[name]
        if not topic.waiting:
            return
        if name == "changes":
            self._carry_on(topic, killed=killed)
            return
        out = self._handled(topic.events[topic.next], topic.next)
        if killed and not _is_declaration(topic.events[topic.next]):
            self._arrive()
            return
        self._publish(out)
        topic.next += 1

    def encode(self) -> None:
        """Let the indexer make the next vector."""
        self.vectors.encode()

    def write(self, most: int, *, killed: bool = False) -> None:
        """Let the indexer write a batch."""
        self.vectors.write(most, killed=killed)

    def flow(self, rounds: int) -> None:
        """Let every reader handle some events, one after another."""
        for _ in range(rounds):
            for name in self.topics:
                self.read(name)
            self.encode()
            self.write(3)

    def redeliver(self, name: str, events: int) -> None:
        """Set a reader back; what it had under way is begun anew."""
        if name == "remembered":
            self.vectors.redeliver(events)
            return
        self.topics[name].back(events)
        if name == "changes":
            self._carrying = None

    def look(self) -> None:
        """Have the vectors made again that wait for a model that is there, or lie in another space."""
        if not self.is_to_look:
            return
        self.is_to_look = False
        for memory_id in list(self.words.with_status(PARTITION, ("stale", "pending"))):
            memory = self.memories.get(PARTITION, memory_id)
            if memory is not None and self._may_embed(memory):
                self.topics["embedded"].events.append(
                    Embedded(
                        memory_id=memory_id,
                        content_hash=memory.content_hash,
                        mode=memory.mode,
                        status="stale",
                        at=self.clock.now(),
                    )
                )

    def settle(self, order: Sequence[int]) -> None:
        """Everything is there again, and every event is handled: the readers take turns in this order."""
        self.index.up()
        for embedder in EMBEDDERS:
            self.load(embedder)
        turns: list[Callable[[], None]] = [partial(self.read, name) for name in self.topics]
        turns += [self.vectors.encode, partial(self.vectors.write, 3), self.look]
        for number in range(MOST_EVENTS):
            if not self._is_busy():
                return
            turns[(order[number % len(order)] + number // len(order)) % len(turns)]()
        raise AssertionError("this never ends")

    def close(self) -> None:
        """End the loop."""
        self.loop.close()

    # What is there.

    def places(self) -> dict[str, dict[VectorLocation, Point]]:
        """Where the index has a point of each memory."""
        found: dict[str, dict[VectorLocation, Point]] = {}
        for kept in self.index._collections.values():
            for point in kept.points.values():
                place = VectorLocation(mode=point.mode, space=kept.fingerprint.digest)
                found.setdefault(point.memory_id, {})[place] = point
        return found

    def due(self, memory: Memory) -> tuple[VectorLocation, Vector]:
        """Where a memory's vector belongs, and what it is."""
        embedder, space = self.spaces.of(memory)
        vector = self._run(embedder.passage(embedding_text(memory))).pooled
        return VectorLocation(mode=memory.mode, space=space.fingerprint.digest), vector

    def _handled(self, event: Any, offset: int) -> list[tuple[str, Any]]:
        match event:
            case Turn(), int() as timestamp:
                try:
                    accepted = self.remember.turn(
                        event[0], record(offset=offset, timestamp_ms=timestamp, partition=PARTITION)
                    )
                except Rejected:
                    return []
                return _following(accepted.events)
            case Command():
                try:
                    handler: CommandHandler = getattr(self.commands, event.command)
                    governed: CommandResult = self._run(handler(event, offset))
                except Rejected:
                    return []
                return [("changes", governed.change)] if governed.change else []
            case Embedded():
                after = self.remember.embedded(event)
                return _following([] if after is None else [after])
            case _:
                return _following(self.remember.understood(event).events)

    def _carry_on(self, topic: Topic, *, killed: bool) -> None:
        """One memory of a change, or its end."""
        change = topic.events[topic.next]
        if self._carrying is None:
            self._carrying = self.remember.changed(change)
        done = next(self._carrying, None)
        if killed:
            self._arrive()
        elif done is None:
            self._carrying = None
            topic.next += 1
            self.is_to_look |= change.action == "stale"
        else:
            self._publish(_following(done[1]))

    def _arrive(self) -> None:
        """Begin again as a worker that was killed: its words are what was committed."""
        self._carrying = None
        self.words.open(PARTITION)
        for event in find_removed_but_indexed(self.stores.memories, self.stores.words):
            if event is not None:
                self.words.remove(PARTITION, event.memory_id)
                self._publish(_following([event]))

    def _publish(self, out: list[tuple[str, Any]]) -> None:
        self.words.commit(PARTITION)
        for name, event in out:
            (self.vectors.remembered if name == "remembered" else self.topics[name]).events.append(event)

    def _may_embed(self, memory: Memory) -> bool:
        if memory.embedding.status == "pending" and memory.embedding.error is None:
            return False
        try:
            self.spaces.of(memory)
        except (ModelMissing, Rejected):
            return False
        return True

    def _is_busy(self) -> bool:
        waiting = (topic.waiting for topic in self.topics.values())
        return any(waiting) or self.vectors.is_busy or self.is_to_look

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(call)

    async def _no_health(self, _command: Command) -> dict[str, Any]:
        return {}


def _following(events: Sequence[MemoryEvent]) -> list[tuple[str, Any]]:
    return [("remembered", event) for event in events if isinstance(event, Remembered | Forgotten)]


def _is_declaration(event: Any) -> bool:
    return isinstance(event, Command) and event.command == "declare_mode"
