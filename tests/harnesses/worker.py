"""One worker without Kafka: a real lexical index, fake tables, models and publisher."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents.commands.admit import Admit
from agents.embedding.embed import Embed
from agents.memory.write_memory import finish
from agents.modes.vector_spaces import VectorSpaces
from agents.understanding.interaction_reader import InteractionReader
from agents.understanding.understand import Understand
from schemas.internal.changes import Change, IssuedCommands
from schemas.internal.consolidation import RunHistory
from schemas.internal.events import Embedded, Forgotten, Remembered, Understood
from schemas.internal.job_history import JobHistory
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL_MODE, FormerEmbedder, Mode, UsageHistory, VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.bootstrap.adapters import shipped_classifier
from streams.bootstrap.prompts import Prompts
from streams.flow.job_log import JobLog
from streams.flow.pipelines.in_force import shipped_pipelines
from streams.flow.requests.channel import Channel, EventReader, Handler
from streams.flow.requests.pipeline import Admission, RequestPipeline
from streams.flow.steps.embed import REMEMBERED_EVENTS, AskModel, EmbedRemembered, ReportEmbedded
from streams.flow.steps.remember import RememberTurns
from streams.flow.steps.step import CommittingStep, TurnsStep
from streams.flow.stores import UsageLog
from streams.flow.worker_context import WorkerContext
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets
from streams.topics import topics_with_prefix
from tests.builders.maps import draw_map_over
from tests.builders.stores import commits_over, fake_stores, remember_over
from tests.builders.taxonomies import SHIPPED
from tests.builders.turns import PARTITIONS, record, turn
from tests.fakes.clock import FakeClock
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.language_model import FakeLanguageModel
from tests.fakes.publisher import FakePublisher
from tests.fakes.tables.categories import FakeCategories
from tests.fakes.tables.claims import FakeClaims
from tests.fakes.tables.interactions import FakeInteractions
from tests.fakes.tables.json_table import FakeJsonTable, FakeReceipts, FakeScopeTable
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes
from tests.fakes.vector_index import FakeIndex

HERE = record().partition
TOPICS = topics_with_prefix("memory.")
DIMS = {"general": 384, "tiny32": 32, "tiny48": 48}


class WorkerHarness:
    """The parts of a worker. The user is `u1`, in partition `HERE`."""

    def __init__(self, directory: Path, *, asks_model: bool = False) -> None:
        self.language = FakeLanguageModel()
        self.memories = FakeMemories()
        self.modes = FakeModes()
        self.claims = FakeClaims()
        self.interactions = FakeInteractions()
        self.categories = FakeCategories()
        self.words = SqliteLexicalIndex(directory)
        self.words.open(HERE)
        self.index = FakeIndex()
        self.embedders = FakeEmbedders()
        self.publisher = FakePublisher()
        self.progress = AppliedOffsets()
        self.clock = FakeClock()
        self.meters = Meters()
        self.stores = fake_stores(
            self.words,
            self.memories,
            self.modes,
            self.claims,
            categories=self.categories,
            interactions=self.interactions,
        )
        self.ctx = WorkerContext(
            topics=TOPICS,
            partitions=PARTITIONS,
            stores=self.stores,
            consolidations=FakeScopeTable(RunHistory),
            issued=FakeJsonTable(IssuedCommands),
            commit=commits_over(self.words, self.meters),
            progress=self.progress,
            publisher=self.publisher,
            clock=self.clock,
            meters=self.meters,
            jobs=JobLog(FakeJsonTable(JobHistory)),
            receipts=FakeReceipts(),
            usage=UsageLog(FakeJsonTable(UsageHistory), commits_over(self.words, self.meters), self.clock),
        )
        here = self.stores.at(HERE)
        self.spaces = VectorSpaces(here.modes, self.embedders)
        self.remember = remember_over(here, self.embedders, asks_model=asks_model)
        self.embed = Embed(lambda _: self.spaces, self.index, self.clock)
        self.draw_map = draw_map_over(here, self.spaces, self.index, self.clock, directory / "maps")
        reader = InteractionReader(lambda: self.embedders.of(GENERAL_MODE), shipped_classifier(), SHIPPED)
        template = Prompts().of("understand")
        self.understand = Understand(
            reader,
            self.language,
            template,
            here.modes,
            here.words,
            here.memories,
            self.clock,
            shipped_pipelines().current,
        )

    def committing(self, channel: Channel, handler: Handler, **how: Any) -> CommittingStep:
        admission = Admission(channel, Admit(), PARTITIONS, TOPICS.replies, self.clock)
        pipeline = RequestPipeline(admission, handler, self.ctx.replies)
        if channel.topic == TOPICS.turns:
            return TurnsStep(pipeline.begin, self.ctx.commit, self.progress)
        return CommittingStep(pipeline.begin, self.ctx.commit, **how)

    def turns_step(self) -> CommittingStep:
        turns = Channel(TOPICS.turns, {"turn.v1": Turn}, "write", keeps_rejected=True, outlives_deadline=True)
        return self.committing(
            turns,
            RememberTurns(lambda _: self.remember, self.stores, self.ctx.commit, self.publisher, TOPICS, self.meters),
        )

    def embed_step(self, ask_model: AskModel = lambda _partition, _memory: None) -> EmbedRemembered:
        return EmbedRemembered(
            EventReader(REMEMBERED_EVENTS, self.ctx.replies),
            self.embed,
            lambda _: self.understand,
            lambda _: self.draw_map,
            ask_model,
            ReportEmbedded(
                lambda _: self.remember, self.ctx.commit, self.publisher, TOPICS, self.meters, self.ctx.recent
            ),
            self.meters,
            worker_run_id=self.ctx.worker_run_id,
        )

    def declare(self, name: str, embedder: str, *, former: str | None = None, **filters: bool) -> None:
        """Declare or redeclare a mode; the vectors of its former embedder stay."""
        declared = self.modes.get(HERE, "u1")
        others = tuple(mode for mode in declared.modes if mode.name != name)
        before = None if former is None else FormerEmbedder(embedder=former, embedding_dim=DIMS[former])
        mode = Mode(name=name, embedder=embedder, embedding_dim=DIMS[embedder], former=before, **filters)
        self.modes.put(HERE, "u1", declared.model_copy(update={"modes": (*others, mode)}))

    def say(self, text: str, offset: int, **fields: Any) -> Memory:
        """Remember a turn and mark its offset as applied."""
        accepted = finish(self.remember.turn(turn(text, **{"turn_id": text, **fields}), record(offset=offset)))
        self.ctx.commit.set_applied(HERE, TOPICS.turns, offset + 1)
        assert accepted.event is not None
        return accepted.event.memory

    def stored(self, memory: Memory) -> Memory:
        found = self.memories.get(HERE, memory.memory_id)
        assert found is not None
        return found

    def applied(self, topic: str) -> int:
        return self.ctx.commit.applied(HERE, topic)

    async def embed_memory(self, memory: Memory) -> Memory:
        [report] = await self.embed.write([await self.embed.encode(Remembered(memory=memory), HERE)])
        self.remember.embedded(report)
        return self.stored(memory)

    async def say_embedded(self, text: str, offset: int, **fields: Any) -> Memory:
        return await self.embed_memory(self.say(text, offset, **fields))

    def space(self, mode: str, embedder: str) -> VectorSpace:
        return VectorSpace(mode, self.embedders.fingerprint(embedder))

    def count_postings(self, term: str) -> int:
        return len(self.words.postings(HERE, "u1", [term])[0].numbers)

    def embedded_events(self) -> list[Embedded]:
        records = [Embedded.model_validate_json(out.value or b"") for out in self.publisher.to(TOPICS.embedded)]
        return [each for record in records for each in record.each()]

    def understood_events(self) -> list[Understood]:
        return [Understood.model_validate_json(out.value or b"") for out in self.publisher.to(TOPICS.understood)]

    def remembered_memories(self) -> list[Memory]:
        sent = (out.value or b"" for out in self.publisher.to(TOPICS.remembered))
        return [Remembered.model_validate_json(value).memory for value in sent if b'"remembered.v1"' in value]

    def forgotten_events(self) -> list[Forgotten]:
        sent = (out.value or b"" for out in self.publisher.to(TOPICS.remembered))
        return [Forgotten.model_validate_json(value) for value in sent if b'"forgotten.v1"' in value]


def event_record(event: BaseModel, topic: str, offset: int = 0, **how: Any) -> Record:
    return record(event.model_dump_json(by_alias=True).encode(), topic=topic, offset=offset, **how)


def change(action: Any, **fields: Any) -> Change:
    """Return a change of u1's memories."""
    return Change.model_validate({"scope": {"user_id": "u1", "project_id": "p1"}, "action": action, **fields})


async def run_step(step: Any, *records: Record) -> None:
    """Begin records in order, then settle them together."""
    finishing: list[Awaitable[Any]] = [await step.begin(each) for each in records]
    await step.settle([await entry for entry in finishing])
