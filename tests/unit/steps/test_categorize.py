"""The step that removes outdated category summaries: written before the event is acknowledged."""

from collections.abc import Awaitable
from pathlib import Path

import pytest

from agents.categories.categorize import Categorize
from agents.categories.matching import CategoryMatcher, CategoryMembers, CategoryVectors
from agents.categories.refresh import CategoryMedoids, RefreshCategories
from schemas.internal.events import Learned
from schemas.messages.records import Record
from schemas.state.categories import Category
from streams.flow.pipelines.in_force import shipped_pipelines
from streams.flow.requests.channel import EventReader
from streams.flow.steps.step import LEARNED_EVENTS, ApplyLearned
from tests.builders.memories import made
from tests.builders.stores import fake_stores
from tests.fakes.tables.categories import FakeCategories
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness

STAYS, GOES = made("It stays.", 1, user="u1"), made("It goes.", 2, user="u1")
SCOPE = STAYS.scope


class Step:
    """The step over fakes, with a category summary of two memories."""

    def __init__(self, directory: Path) -> None:
        self.worker = WorkerHarness(directory)
        ctx = self.worker.ctx
        self.table = FakeCategories()
        self.worker.memories.put(HERE, STAYS)
        both = {each.memory_id: each.content_hash for each in (STAYS, GOES)}
        category = Category(name="x", summary="It stays.\nIt goes.", anchors=tuple(both), rests_on=both, declared=True)
        self.table.put(HERE, SCOPE, self.table.get(HERE, SCOPE).with_categories(category))
        stores = fake_stores(self.worker.words, self.worker.memories, categories=self.table).at(HERE)
        members, index, spaces = CategoryMembers(stores.words), self.worker.index, self.worker.spaces
        matcher = CategoryMatcher(stores.categories, stores.memories, members, index, spaces, CategoryVectors())
        medoids = CategoryMedoids(stores.memories, index, spaces)
        refreshing = RefreshCategories(stores.categories, stores.memories, members, medoids)
        categorize = Categorize(stores.categories, stores.memories, members, matcher, refreshing)
        self.step = ApplyLearned(
            EventReader(LEARNED_EVENTS, ctx.replies), lambda _: categorize, ctx.commit, shipped_pipelines()
        )

    async def begin(self, event: Learned | bytes) -> Awaitable[int]:
        value = event if isinstance(event, bytes) else event.model_dump_json(by_alias=True).encode()
        return await self.step.begin(Record(TOPICS.learned, HERE, 7, 0, b"u1", value, ()))

    def summary(self) -> str | None:
        found = self.table.get(HERE, SCOPE).find("x")
        return None if found is None else found.summary


LEARNED = Learned(memory_id=GOES.memory_id, scope=SCOPE)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


async def test_stale_summary_parts_are_removed(step: Step) -> None:
    await (await step.begin(LEARNED))
    assert step.summary() == "It stays."


async def test_event_that_changes_nothing_writes_nothing(step: Step) -> None:
    step.worker.memories.put(HERE, GOES)
    await (await step.begin(LEARNED))
    assert step.summary() == "It stays.\nIt goes."
    assert step.table.writes == 1, "only the write of the test setup"


async def test_unreadable_event_is_a_dead_letter(step: Step) -> None:
    await (await step.begin(b"nonsense"))
    assert [out.topic for out in step.worker.publisher.sent] == [TOPICS.dead_letters]
