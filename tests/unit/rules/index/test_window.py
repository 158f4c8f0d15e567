"""Which turns of a conversation are looked at."""

from agents.rules.index.memory_columns import Roster, Row
from agents.rules.index.traits import Trait
from agents.rules.index.window import FEWEST_TOKENS, MOST_TURNS, TURNS_NAMED, last_turns, turns_in
from schemas.vectors import Where
from tests.builders.memories import made


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def roster_of(count: int) -> Roster:
    turn = made("", 0)
    rows = [Row(n, made("", n).memory_id, 0, n, n, 3, 0.5, superseded=False, space=None) for n in range(count)]
    return Roster(rows, {0: Trait.of(turn)})


def test_a_long_conversation_is_looked_at_from_its_end_and_not_without_end() -> None:
    roster = roster_of(TURNS_NAMED + 100)
    anything = Where("ana")
    assert last_turns(roster, anything, "c1", 4000) == memory_ids(*range(100, TURNS_NAMED + 100))
    assert len(last_turns(roster, anything, "c1", (TURNS_NAMED + 50) * FEWEST_TOKENS)) == TURNS_NAMED + 50
    assert turns_in(10**12) == MOST_TURNS


def test_without_a_conversation_there_are_no_last_turns() -> None:
    assert last_turns(roster_of(3), Where("ana"), None, 4000) == []
