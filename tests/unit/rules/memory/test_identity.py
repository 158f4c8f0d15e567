"""Ids and hashes: stable and collision-free."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as some
from modestream_client.turn_ids import derive_turn_id

from agents.rules.memory.identity import derive_memory_id, hash_texts

SCOPE = {"user_id": "u1", "project_id": "p1"}
WHEN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
WORDS = some.text(max_size=30)


def test_ids_are_stable_across_releases() -> None:
    assert derive_memory_id(SCOPE, "c1", "t-17") == "339125f3-a7b7-55f2-97f7-7ac86b49fd25"
    assert derive_turn_id(SCOPE, "c1", "user", "Hello", WHEN) == "derived-20d678083416f498f703dc1320fa85ba"
    assert hash_texts(["Hello"]) == "024650ad788f9b375fc97d1d950c1ba6"


@given(WORDS, WORDS, WORDS, WORDS)
def test_memory_id_ignores_the_order_of_scope_fields(user: str, project: str, conversation: str, turn: str) -> None:
    forth, back = {"user_id": user, "project_id": project}, {"project_id": project, "user_id": user}
    assert derive_memory_id(forth, conversation, turn) == derive_memory_id(back, conversation, turn)


TURNS = some.tuples(WORDS, WORDS, WORDS, WORDS)


@given(TURNS, TURNS)
def test_memory_id_is_unique_by_scope_conversation_and_turn(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    ids = {derive_memory_id({"user_id": u, "project_id": p}, c, t) for u, p, c, t in (one, other)}
    assert len(ids) == len({one, other})


def test_adjacent_parts_are_hashed_separately() -> None:
    assert derive_memory_id(SCOPE, "a", "bc") != derive_memory_id(SCOPE, "ab", "c")
    assert derive_memory_id(SCOPE, 'a","b', "c") != derive_memory_id(SCOPE, "a", 'b","c')
    assert hash_texts(["ab"]) != hash_texts(["a", "b"])


def test_derived_turn_id_depends_on_every_part() -> None:
    ids = {
        derive_turn_id(SCOPE, "c1", "user", "Hello", WHEN),
        derive_turn_id(SCOPE | {"project_id": "p2"}, "c1", "user", "Hello", WHEN),
        derive_turn_id(SCOPE, "c2", "user", "Hello", WHEN),
        derive_turn_id(SCOPE, "c1", "assistant", "Hello", WHEN),
        derive_turn_id(SCOPE, "c1", "user", "Hello.", WHEN),
        derive_turn_id(SCOPE, "c1", "user", "Hello", WHEN + timedelta(milliseconds=1)),
    }
    assert len(ids) == 6


@given(some.integers(-14, 14))
def test_derived_turn_id_is_independent_of_the_time_zone(hours: int) -> None:
    elsewhere = WHEN.astimezone(timezone(timedelta(hours=hours)))
    assert derive_turn_id(SCOPE, "c", "user", "x", elsewhere) == derive_turn_id(SCOPE, "c", "user", "x", WHEN)
