"""Applying turns to memories: versions, repetitions, redeliveries, moves."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as some
from modestream_client.records import derive_turn_id

from agents.rules.memory.versions import (
    has_same_text,
    identify_turn,
    is_redelivered,
    is_stale_redelivery,
    move_to_mode,
    next_memory,
)
from schemas.messages.turns import Turn
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, TurnUnderstanding, VectorLocation, derive_memory_id, hash_texts
from tests.builders.memories import embedded_in, made
from tests.builders.turns import turn

WHEN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def after(known: Memory | None, said: Turn, offset: int, *, asks_model: bool = False) -> Memory:
    identity = identify_turn(said, WHEN + timedelta(seconds=offset))
    return next_memory(said, identity, known, ("general", "fallback"), offset, asks_model=asks_model)


def test_first_turn_is_version_one_with_itself_as_evidence() -> None:
    memory = after(None, turn("Hello Köln", turn_id="t1", speaker="Ana", metadata={"a": [1]}, importance=0.5), 5)
    assert memory.version == 1
    assert memory.current == 0
    assert memory.source == 5
    assert memory.latest == 5
    assert memory.text == "Hello Köln"
    assert memory.speaker == "Ana"
    assert memory.metadata == {"a": [1]}
    assert memory.importance == 0.5
    assert [
        (quotation.turn_id, quotation.start, quotation.end, quotation.resource) for quotation in memory.evidence
    ] == [("t1", 0, 10, None)]
    assert memory.embedding.status == "pending"
    assert memory.boundary == "u1"


def test_evidence_counts_code_points_and_names_resources() -> None:
    shown = [{"uri": "a", "text": "\U0001f600é"}, {"uri": "b"}, {"uri": "c", "text": ""}]
    memory = after(None, turn("\U0001f600", turn_id="t", resources=shown), 0)
    assert [(quotation.resource, quotation.end) for quotation in memory.evidence] == [(None, 1), ("a", 2)]


def test_edit_keeps_id_and_time_and_counts_texts() -> None:
    first = after(None, turn("A", turn_id="t"), 1)
    edited = after(first.model_copy(update={"embedding": embedded_in("s1")}), turn("B", turn_id="t"), 2)
    assert edited.memory_id == first.memory_id
    assert edited.occurred_at == first.occurred_at
    assert edited.source == 1
    assert edited.latest == 2
    assert edited.text == "B"
    assert edited.version == 2
    assert edited.current == 1
    assert edited.embedding.status == "pending"
    assert edited.content_hash != first.content_hash
    back = after(edited, turn("A", turn_id="t"), 3)
    assert back.text == "A"
    assert back.version == 2
    assert back.current == 0
    assert back.content_hash == first.content_hash
    assert [version.first_seen for version in back.versions] == [WHEN + timedelta(seconds=n) for n in (1, 2)]


def test_explicit_time_wins() -> None:
    named = turn("A", turn_id="t", occurred_at="2020-01-01T00:00:00Z")
    assert after(None, named, 1).occurred_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert after(after(None, turn("B", turn_id="t"), 0), named, 1).occurred_at.year == 2020


def test_turn_without_id_is_identified_by_record_time() -> None:
    assert identify_turn(turn("A"), WHEN) == identify_turn(turn("A"), WHEN)
    assert identify_turn(turn("A"), WHEN).memory_id != identify_turn(turn("A"), WHEN + timedelta(seconds=1)).memory_id


def test_only_the_current_text_is_a_repetition() -> None:
    memory = after(after(None, turn("A", turn_id="t"), 1), turn("B", turn_id="t"), 2)
    assert has_same_text(memory, identify_turn(turn("B", turn_id="t"), WHEN))
    assert not has_same_text(memory, identify_turn(turn("A", turn_id="t"), WHEN))
    assert not has_same_text(None, identify_turn(turn("A", turn_id="t"), WHEN))


def test_redelivery_is_the_record_applied_last() -> None:
    memory = after(None, turn("A"), 7)
    assert [is_redelivered(memory, offset) for offset in (6, 7, 8)] == [False, True, False]


def test_content_hash_is_of_the_embedded_text() -> None:
    plain = after(None, turn("A", turn_id="t"), 1)
    assert after(None, turn("A", turn_id="t", speaker="Ana"), 1).content_hash == plain.content_hash
    captioned = turn("A", turn_id="t", resources=[{"uri": "a", "text": "a cat"}])
    assert after(None, captioned, 1).content_hash != plain.content_hash


def test_stale_redelivery_is_older_by_offset_and_time() -> None:
    latest = after(after(None, turn("A", turn_id="t"), 1), turn("B", turn_id="t"), 2)
    old, new = (identify_turn(turn("A", turn_id="t"), WHEN + timedelta(seconds=second)) for second in (1, 3))
    assert is_stale_redelivery(latest, old, 1)
    assert not is_stale_redelivery(latest, new, 1), "a recreated topic starts at offset 0 again"
    assert not is_stale_redelivery(latest, old, 3), "replayed turns are new records with old times"


def test_edit_keeps_the_vector_location_as_pending() -> None:
    first = after(None, turn("A", turn_id="t"), 1).model_copy(update={"embedding": embedded_in("s1")})
    embedding = after(first, turn("B", turn_id="t"), 2).embedding
    assert embedding.status == "pending"
    assert embedding.place == VectorLocation(mode="general", space="s1")
    assert embedding.content_hash is None
    assert embedding.space is None


def test_rules_find_intent_and_dates() -> None:
    reading = after(None, turn("Fix the login error by 2026-03-09.", turn_id="t"), 1).reading
    assert reading.status == "rules"
    assert reading.intent == "fix"
    assert reading.times == ("2026-03-09",)
    assert reading.text_hash == identify_turn(turn("Fix the login error by 2026-03-09."), WHEN).text_hash


def test_turn_and_edit_wait_for_the_model() -> None:
    first = after(None, turn("A", turn_id="t"), 1, asks_model=True)
    assert first.reading.status == "pending"
    read = TurnUnderstanding(status="model", topic="tea", interaction=Interaction(mode="TASK", confidence=1))
    edited = after(first.model_copy(update={"reading": read}), turn("B", turn_id="t"), 2, asks_model=True)
    assert edited.reading.status == "pending"
    assert edited.reading.topic is None
    assert edited.reading.interaction is None


def test_move_reuses_only_a_ready_vector() -> None:
    memory = made("A", embedding=embedded_in("s1"))
    there = move_to_mode(memory, ("code", "model"))
    assert there.mode == "code"
    assert there.mode_source == "model"
    assert there.embedding.status == "pending"
    assert there.embedding.place == VectorLocation(mode="general", space="s1")
    assert there.embedding.content_hash == "hash"
    further = move_to_mode(there, ("journal", "model"))
    assert further.embedding.place == VectorLocation(mode="general", space="s1")
    assert further.embedding.content_hash is None
    stale = move_to_mode(made("A", embedding=embedded_in("s1", status="stale")), ("code", "model"))
    assert stale.embedding.content_hash is None


SCOPE = {"user_id": "u1", "project_id": "p1"}
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
    first: tuple[str, str, str, str], second: tuple[str, str, str, str]
) -> None:
    ids = {derive_memory_id({"user_id": u, "project_id": p}, c, t) for u, p, c, t in (first, second)}
    assert len(ids) == len({first, second})


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
