"""The stability of a deployment, by counts that change and a clock."""

from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.stability import MIN_WEEK_USERS, count_classification
from agents.understanding.interaction_reader import AssessStability
from schemas.moments import week_of
from schemas.state.interaction import InteractionCounts
from tests.fakes.clock import FakeClock

WEEK_S = 7 * 24 * 3600.0


def busy_week(counts: InteractionCounts, mode: InteractionMode, clock: FakeClock) -> InteractionCounts:
    for number in range(MIN_WEEK_USERS):
        counts = count_classification(counts, f"u{number}", mode, week_of(clock.now()))
    return counts


def test_decision_follows_the_counts_and_the_clock() -> None:
    clock, partitions = FakeClock(), [InteractionCounts(), InteractionCounts()]
    assess = AssessStability(lambda: partitions, clock)
    assert not assess().is_fallback
    partitions[1] = busy_week(partitions[1], "TASK", clock)
    assert assess().this_week.users == MIN_WEEK_USERS
    clock.forward(WEEK_S)
    assert assess().last_week.users == MIN_WEEK_USERS
    partitions[0] = busy_week(partitions[0], "LEARNING", clock)
    assert assess().reasons == ("drift",)
    assert assess() is assess(), "nothing has changed"
    del partitions[1]
    assert not assess().is_fallback, "the partition left"
    clock.forward(WEEK_S)
    assert assess().this_week.users == 0
