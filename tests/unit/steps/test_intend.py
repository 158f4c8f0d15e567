"""The step of `Intend`: one write for each event, committed before the acknowledgement."""

from collections.abc import Awaitable
from pathlib import Path

from agents.intentions.adjust import Intend
from schemas.internal.events import Learned
from schemas.messages.records import Record
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.pipelines.in_force import shipped_pipelines
from streams.flow.requests.channel import EventReader, Replies
from streams.flow.steps.step import LEARNED_EVENTS, ApplyLearned
from streams.flow.stores import at_partition
from streams.observability.metrics import Meters
from streams.topics import topics_with_prefix
from tests.builders.events import learned
from tests.builders.stores import commits_over
from tests.fakes.clock import FakeClock
from tests.fakes.publisher import FakePublisher
from tests.fakes.tables.intentions import FakeIntentions
from tests.fakes.tables.memories import FakeMemories

TOPICS = topics_with_prefix("memory.")
HERE = 1
GOAL = learned("We want to ship the beta.", 1, "goal")


class Step:
    def __init__(self, directory: Path) -> None:
        self.words = SqliteLexicalIndex(directory)
        self.table, self.publisher, memories = FakeIntentions(), FakePublisher(), FakeMemories()
        for memory in (GOAL.memory, *GOAL.items):
            assert memory is not None
            memories.put(HERE, memory)
        self.intend = Intend(at_partition(self.table, HERE), at_partition(memories, HERE), FakeClock())
        replies = Replies(self.publisher, TOPICS.dead_letters, FakeClock(), Meters())
        self.step = ApplyLearned(
            EventReader(LEARNED_EVENTS, replies), lambda _: self.intend, commits_over(self.words), shipped_pipelines()
        )

    async def begin(self, value: bytes) -> Awaitable[int]:
        return await self.step.begin(Record(TOPICS.learned, HERE, 7, 0, b"ana", value, ()))

    def goals(self) -> list[str]:
        return [entry.text for entry in self.intend.get(GOAL.scope).open_entries("goals")]


def written(event: Learned) -> bytes:
    return event.model_dump_json(by_alias=True).encode()


async def test_partition_of_the_event_is_committed_before_its_acknowledgement(tmp_path: Path) -> None:
    step = Step(tmp_path)
    database = step.words.databases.at(HERE)
    database.begin()
    await step.step.settle([await (await step.begin(written(GOAL)))])
    assert not database.connection.in_transaction


async def test_written_event_is_done(tmp_path: Path) -> None:
    step = Step(tmp_path)
    await (await step.begin(written(GOAL)))
    assert step.goals() == ["We want to ship the beta."]


async def test_invalid_event_is_a_dead_letter_without_a_change(tmp_path: Path) -> None:
    step = Step(tmp_path)
    await (await step.begin(b"nonsense"))
    [letter] = step.publisher.to(TOPICS.dead_letters)
    assert letter.value == b"nonsense"
    assert step.table.writes == 0
