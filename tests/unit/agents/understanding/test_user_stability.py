"""The stability for one user: the deployment's, or that of the user's own weeks."""

from datetime import UTC, datetime, timedelta

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.stability import MAX_WEEK_TURNS, MIN_WEEK_USERS, Stability, assume_stable
from agents.understanding.interaction_reader import OWN_WEEKS_S, UserStability
from schemas.moments import week_of
from schemas.state.interaction import Interaction, WeekTotals
from schemas.state.memories import TurnUnderstanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.contexts import ContextHarness

WEEK = 7 * 24 * 3600.0


class OwnWeeks:
    """A library of turns, and the stability of their users."""

    def __init__(self, library: ContextHarness) -> None:
        self.library = library
        self.deployment = assume_stable()
        stores = library.stores
        self.stability = UserStability(lambda: self.deployment, stores.words, stores.memories, library.clock)

    def say(self, turns: int, mode: InteractionMode, *, user: str = "ana", role: str = "user") -> None:
        """Store turns of this week, one a minute from its first day on."""
        monday = datetime.fromordinal(week_of(self.library.clock.now()) * 7 + 1).replace(tzinfo=UTC)
        first = len(self.library.records)
        reading = TurnUnderstanding(interaction=Interaction(mode=mode, confidence=0.9))
        self.library.store(
            *(
                made(
                    f"turn {number}",
                    number,
                    user=user,
                    role=role,
                    occurred_at=monday + timedelta(minutes=number),
                    reading=reading,
                )
                for number in range(first, first + turns)
            )
        )


@pytest.fixture
def weeks(words: SqliteLexicalIndex) -> OwnWeeks:
    return OwnWeeks(ContextHarness(words))


def test_own_weeks_of_another_mix_are_a_fallback_for_that_user_alone(weeks: OwnWeeks) -> None:
    weeks.say(60, "TASK", user="ana")
    weeks.say(60, "TASK", user="ben")
    weeks.library.clock.forward(WEEK)
    weeks.say(60, "LEARNING", user="ana")
    weeks.say(60, "TASK", user="ben")
    assert weeks.stability("ana").reasons == ("drift",)
    assert weeks.stability("ben").reasons == ()


def test_turns_of_assistants_do_not_count(weeks: OwnWeeks) -> None:
    weeks.say(60, "TASK")
    weeks.library.clock.forward(WEEK)
    weeks.say(60, "LEARNING", role="assistant")
    assert weeks.stability("ana").this_week.users == 0


def test_deployment_of_enough_users_decides(weeks: OwnWeeks) -> None:
    weeks.say(60, "TASK")
    weeks.library.clock.forward(WEEK)
    weeks.say(60, "LEARNING")
    many = WeekTotals(users=MIN_WEEK_USERS)
    weeks.deployment = Stability(many, many)
    assert weeks.stability("ana") is weeks.deployment


def test_latest_turns_of_a_week_count(weeks: OwnWeeks) -> None:
    weeks.say(60, "TASK")
    weeks.say(MAX_WEEK_TURNS, "LEARNING")
    assert weeks.stability("ana").this_week.modes == {"LEARNING": MAX_WEEK_TURNS}


def test_own_weeks_are_read_again_after_a_while(weeks: OwnWeeks) -> None:
    weeks.say(60, "TASK")
    assert weeks.stability("ana").this_week.users == 60
    weeks.say(10, "TASK")
    assert weeks.stability("ana").this_week.users == 60
    weeks.library.clock.forward(OWN_WEEKS_S + 1)
    assert weeks.stability("ana").this_week.users == 70
