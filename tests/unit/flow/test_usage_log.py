"""The weekly history of how modes are used: counted once, bounded, lost in part at most."""

import pytest

from schemas.moments import milliseconds_of
from schemas.state.modes import MAX_USAGE_MODES, MAX_USAGE_WEEKS, ModeUsage, UsageHistory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import UsageLog
from tests.builders.stores import commits_over
from tests.builders.turns import record
from tests.fakes.clock import FakeClock
from tests.fakes.tables.json_table import FakeJsonTable

WEEK_S = 7 * 86_400


class UsageHarness:
    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.table, self.commit, self.clock = FakeJsonTable(UsageHistory), commits_over(words), FakeClock()
        self.kill()

    def kill(self) -> None:
        self.log = UsageLog(self.table, self.commit, self.clock)

    def ask(self, offset: int, *modes: str) -> None:
        asked = record({}, topic="memory.retrieve", offset=offset, timestamp_ms=milliseconds_of(self.clock.now()))
        self.log.asked(asked, "ana", modes)

    def questions(self, mode: str = "code") -> int:
        weeks = self.log.of(0, "ana").weeks.values()
        return sum(week[mode].questions for week in weeks if mode in week)


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> UsageHarness:
    return UsageHarness(words)


def test_question_counts_for_each_mode_that_it_searches(harness: UsageHarness) -> None:
    harness.ask(0, "code")
    harness.ask(1, "code", "journal")
    [week] = harness.log.of(0, "ana").weeks.values()
    expected = {
        "code": ModeUsage(questions=2, cross_mode_questions=1),
        "journal": ModeUsage(questions=1, cross_mode_questions=1),
    }
    assert week == expected


async def test_stored_counts_survive_a_kill(harness: UsageHarness) -> None:
    harness.ask(0, "code")
    await harness.log.store([0])
    harness.kill()
    assert harness.questions() == 1


async def test_redelivered_question_is_not_counted_again(harness: UsageHarness) -> None:
    for offset in range(3):
        harness.ask(offset, "code")
    await harness.log.store([0])
    harness.kill()
    for offset in range(1, 5):
        harness.ask(offset, "code")
    assert harness.questions() == 5


def test_question_that_ends_before_an_earlier_one_does_not_hide_it(harness: UsageHarness) -> None:
    harness.ask(1, "code")
    harness.ask(0, "code")
    assert harness.questions() == 2


async def test_partition_of_another_worker_is_not_written(harness: UsageHarness) -> None:
    harness.ask(0, "code")
    await harness.log.store([1])
    assert harness.table.get(0, "ana") == UsageHistory()


async def test_forgotten_user_has_no_history(harness: UsageHarness) -> None:
    harness.ask(0, "code")
    await harness.log.store([0])
    harness.ask(1, "code")
    harness.log.forget(0, "ana")
    await harness.log.store([0])
    assert harness.table.get(0, "ana") == UsageHistory()


def test_weeks_are_bounded(harness: UsageHarness) -> None:
    for offset in range(MAX_USAGE_WEEKS + 5):
        harness.ask(offset, "code")
        harness.clock.forward(WEEK_S)
    assert harness.questions() == MAX_USAGE_WEEKS


def test_modes_of_a_week_are_bounded(harness: UsageHarness) -> None:
    for offset in range(MAX_USAGE_MODES + 5):
        harness.ask(offset, f"mode-{offset}")
    [week] = harness.log.of(0, "ana").weeks.values()
    assert len(week) == MAX_USAGE_MODES
