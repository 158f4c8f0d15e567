"""`Remember`, `Embed` and the commands over fakes, in a loop that a test drives event by event.

Enters: actions of users and models, and when each reader takes its next event. Each topic is in order;
across topics any order is possible. A reader can be set back, as Kafka redelivers unacknowledged records,
or killed after its events are published and before its state is durable.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from agents.commands.handle_commands import HandleCommands
from agents.embedding.embed import Embed
from agents.memory.items import MemoryEvent, WriteStep
from agents.memory.write_memory import finish
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.commands import CommandHandler, CommandResult
from agents.rules.memory.embedding_status import report_of
from agents.rules.text.passages import embedding_text
from schemas.failures import ModelMissing, Rejected
from schemas.internal.events import Embedded, Forgotten, Released, Remembered
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
from tests.fakes.tables.claims import FakeClaims
from tests.fakes.tables.interactions import FakeInteractions
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes
from tests.harnesses.lifecycle.indexer import LifecycleIndexer, Topic
from tests.harnesses.lifecycle.user import PARTITION, LifecycleUser

EMBEDDERS = (GENERAL, "tiny32", "tiny48")
MOST_EVENTS = 2000
"""Limit of `settle`: more events mean an endless loop."""

Result = TypeVar("Result")


class LifecycleHarness(LifecycleUser):
    """One user's memories and the agents that handle the user's records."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        """Delete the contents of the lexical index."""
        self.loop = asyncio.new_event_loop()
        topics = {name: Topic() for name in ("turns", "commands", "changes", "understood", "embedded")}
        super().__init__(topics, FakeMemories(), FakeClock())
        self.modes, self.index = FakeModes(), RejectingIndex()
        self.embedders, self.words = RejectingEmbedders(), words
        self.words.drop(PARTITION)
        self.words.open(PARTITION)
        claims, interactions = FakeClaims(), FakeInteractions()
        self._tables = (self.memories, self.modes, claims, interactions)
        self.stores = fake_stores(words, self.memories, self.modes, claims, interactions=interactions).at(PARTITION)
        self.spaces = VectorSpaces(self.stores.modes, self.embedders, self.stores.words)
        self.remember = remember_over(self.stores, self.embedders, asks_model=True)
        embed = Embed(lambda _: self.spaces, self.index, self.clock)
        self.commands = HandleCommands(
            PARTITION,
            self.stores.memories,
            self.stores.modes,
            self.embedders,
            self._no_health,
            self.clock,
            self.spaces.former_serves,
        )
        reports = self.topics["embedded"].events
        self.vectors = LifecycleIndexer(embed, PARTITION, self.loop, reports)
        self.is_reembedding_due = False
        self._change_steps: Iterator[WriteStep] | None = None
        self._commit()

    # Outages.

    def do_nothing(self) -> None:
        """Do nothing."""

    def take_index_down(self) -> None:
        self.index.down()

    def bring_index_up(self) -> None:
        self.index.up()

    def remove_model(self, embedder: str) -> None:
        self.embedders.missing(embedder)

    def load_model(self, embedder: str) -> None:
        self.embedders.load(embedder)
        self.is_reembedding_due = True

    # Readers.

    def read(self, name: str, *, killed: bool = False) -> None:
        """Handle the next event of a topic; if killed, it is published and not kept."""
        topic = self.topics[name]
        if not topic.waiting:
            return
        if name == "changes":
            self._continue_change(topic, killed=killed)
            return
        out = self._handle(topic.events[topic.next], topic.next)
        if killed and not _is_declaration(topic.events[topic.next]):
            self._publish(out)
            self._restart()
            return
        self._publish(out)
        self._commit()
        topic.next += 1

    def encode(self) -> None:
        self.vectors.encode()

    def write(self, most: int, *, killed: bool = False) -> None:
        self.vectors.write(most, killed=killed)

    def flow(self, rounds: int) -> None:
        """Let every reader handle `rounds` events in turn."""
        for _ in range(rounds):
            for name in self.topics:
                self.read(name)
            self.encode()
            self.write(3)

    def redeliver(self, name: str, events: int) -> None:
        """Set a reader back; unacknowledged work starts again."""
        if name == "remembered":
            self.vectors.redeliver(events)
            return
        self.topics[name].back(events)
        if name == "changes":
            self._change_steps = None

    def reembed_waiting(self) -> None:
        """Request vectors that were waiting for a model or are stale."""
        if not self.is_reembedding_due:
            return
        self.is_reembedding_due = False
        for memory_id in list(self.words.with_status(PARTITION, ("stale", "pending"))):
            memory = self.memories.get(PARTITION, memory_id)
            if memory is not None and self._may_embed(memory):
                self.topics["embedded"].events.append(self._request(memory))

    def _request(self, memory: Memory) -> Embedded:
        """Return the request for a vector, or the report of one that the index has already."""
        _, space = self.spaces.of(memory)
        known = self.index.collections.get(space.collection)
        point = None if known is None else known.points.get(memory.memory_id)
        if space.fingerprint.digest in memory.embedding.held and point and point.content_hash == memory.content_hash:
            return report_of(memory, "kept", space.fingerprint.digest, self.clock.now())
        return Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status="stale",
            at=self.clock.now(),
        )

    def settle(self, order: Sequence[int]) -> None:
        """End all outages and handle every event; `order` schedules the readers."""
        self.index.up()
        for embedder in EMBEDDERS:
            self.load_model(embedder)
        turns: list[Callable[[], None]] = [partial(self.read, name) for name in self.topics]
        turns += [self.vectors.encode, partial(self.vectors.write, 3), self.reembed_waiting]
        for number in range(MOST_EVENTS):
            if not self._is_busy():
                return
            turns[(order[number % len(order)] + number // len(order)) % len(turns)]()
        raise AssertionError("events do not end")

    def close(self) -> None:
        self.loop.close()

    # State.

    def stored_points(self) -> dict[str, dict[VectorLocation, Point]]:
        found: dict[str, dict[VectorLocation, Point]] = {}
        for collection in self.index.collections.values():
            for point in collection.points.values():
                place = VectorLocation(mode=point.mode, space=collection.fingerprint.digest)
                found.setdefault(point.memory_id, {})[place] = point
        return found

    def expected_vector(self, memory: Memory) -> tuple[VectorLocation, Vector]:
        embedder, space = self.spaces.of(memory)
        vector = self._run(embedder.passage(embedding_text(memory))).pooled
        return VectorLocation(mode=memory.mode, space=space.fingerprint.digest), vector

    def _handle(self, event: Any, offset: int) -> list[tuple[str, Any]]:
        match event:
            case Turn(), int() as timestamp:
                try:
                    accepted = finish(
                        self.remember.turn(event[0], record(offset=offset, timestamp_ms=timestamp, partition=PARTITION))
                    )
                except Rejected:
                    return []
                return _following(accepted.events)
            case Command():
                try:
                    handler: CommandHandler = getattr(self.commands, event.command)
                    result: CommandResult = self._run(handler(event, offset))
                except Rejected:
                    return []
                return [("changes", result.change)] if result.change else []
            case Embedded():
                after = self.remember.embedded(event)
                return _following([] if after is None else [after])
            case _:
                return _following(finish(self.remember.understood(event)).events)

    def _continue_change(self, topic: Topic, *, killed: bool) -> None:
        """Apply the next step of a change."""
        change = topic.events[topic.next]
        if self._change_steps is None:
            self._change_steps = self.remember.changed(change)
        done = next(self._change_steps, None)
        self._publish([] if done is None else _following(done[1]))
        if killed:
            self._restart()
            return
        self._commit()
        if done is None:
            self._change_steps = None
            topic.next += 1
            self.is_reembedding_due |= change.action == "stale"

    def _commit(self) -> None:
        self.words.commit(PARTITION)
        self._durable = [deepcopy(vars(table)) for table in self._tables]

    def _restart(self) -> None:
        """Restart after a kill: uncommitted rows and words are lost."""
        self._change_steps = None
        self.words.open(PARTITION)
        for table, durable in zip(self._tables, self._durable, strict=True):
            vars(table).update(deepcopy(durable))

    def _publish(self, out: list[tuple[str, Any]]) -> None:
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
        return any(waiting) or self.vectors.is_busy or self.is_reembedding_due

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(call)

    async def _no_health(self, _command: Command) -> dict[str, Any]:
        return {}


def _following(events: Sequence[MemoryEvent]) -> list[tuple[str, Any]]:
    return [("remembered", event) for event in events if isinstance(event, Remembered | Forgotten | Released)]


def _is_declaration(event: Any) -> bool:
    return isinstance(event, Command) and event.command == "declare_mode"
