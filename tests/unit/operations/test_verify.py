import json
from typing import Any

import pytest

from agents.rules.memory.versions import identify_turn, next_memory
from operations.compare import Differences, compare_memories
from operations.verify import Findings, LoggedTurns, StoredRows, find_gaps
from schemas.messages.decoding import decode
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from streams.tables.memory_tables import FORGOTTEN_TOMBSTONE
from streams.wire.partitioning import partition_of, relocate

PARTITION = partition_of(b"ana", 4)


def record(offset: int, text: str, turn_id: str, user: str = "ana", partition: int = PARTITION) -> Record:
    turn = {"schema": "turn.v1", "scope": {"user_id": user}, "conversation_id": "c", "role": "user"}
    value = json.dumps({**turn, "content": text, "turn_id": turn_id}).encode()
    return Record("memory.turns", partition, offset, 1_780_000_000_000 + offset, b"ana", value)


class Stores:
    def __init__(self, *dead: tuple[int, int]) -> None:
        self.logged = LoggedTurns({"turn.v1": Turn}, 4, frozenset(dead), {"ana"})
        self.stored = StoredRows({"ana"})

    def log(self, offset: int, text: str, turn_id: str) -> str:
        read = record(offset, text, turn_id)
        self.logged.take(read)
        return self.id_of(read)

    def store(self, offset: int, text: str, turn_id: str) -> None:
        read = record(offset, text, turn_id)
        turn = decode(read.value, {"turn.v1": Turn})
        identity = identify_turn(turn, moment_of(read.timestamp_ms))
        memory = next_memory(turn, identity, None, ("general", "fallback"), offset, asks_model=False)
        self.row(identity.memory_id, memory.model_dump_json().encode())

    def row(self, memory_id: str, value: bytes | None) -> None:
        self.stored.take(Record("changelog", PARTITION, 0, 0, memory_id.encode(), value))

    def gaps(self, end: int = 100) -> Differences:
        return find_gaps(self.logged, self.stored, "ana", end)

    @staticmethod
    def id_of(read: Record) -> str:
        return identify_turn(decode(read.value, {"turn.v1": Turn}), moment_of(read.timestamp_ms)).memory_id


def test_turn_without_a_row_is_missing_and_a_forgotten_one_is_not() -> None:
    stores = Stores()
    lost, forgotten = stores.log(1, "blue", "t1"), stores.log(2, "secret", "t2")
    stores.log(3, "grey", "t3")
    stores.store(3, "grey", "t3")
    stores.row(forgotten, FORGOTTEN_TOMBSTONE)
    assert stores.gaps().missing == [lost]
    assert not stores.gaps().different


def test_row_with_an_earlier_text_differs_and_one_of_a_later_record_does_not() -> None:
    stores = Stores()
    edited, newer = stores.log(1, "blue", "t1"), stores.log(2, "grey", "t2")
    stores.log(5, "green", "t1")
    stores.store(1, "blue", "t1")
    stores.store(9, "white", "t2")
    assert stores.gaps().different == [edited]
    assert newer not in stores.gaps().missing


def test_row_without_a_record_is_unlogged_unless_it_came_after_the_look() -> None:
    stores = Stores()
    stores.store(4, "blue", "t1")
    assert len(stores.gaps(end=5).extra) == 1
    assert stores.gaps(end=4).extra == []


def test_dead_letters_other_users_and_misplaced_records_are_no_turns_of_the_log() -> None:
    stores = Stores((PARTITION, 1), (PARTITION + 1, 7))
    stores.log(1, "unknown mode", "t1")
    moved = relocate(record(7, "moved and refused", "t2", partition=PARTITION + 1), b"ana", PARTITION)
    stores.logged.take(Record("memory.turns", PARTITION, 8, 1, moved.key, moved.value, moved.headers))
    stores.logged.take(record(9, "misplaced", "t3", partition=(PARTITION + 1) % 4))
    stores.logged.take(record(10, "another's", "t4", user="ben"))
    stores.logged.take(Record("memory.turns", PARTITION, 11, 1, b"ana", b"no JSON"))
    assert stores.logged.turns == {}


def test_findings_of_users_add_up_and_name_some() -> None:
    found = Findings()
    for user in range(3):
        mine = Findings()
        mine.note("vectors_missing", [f"{user}-{number}" for number in range(10)], 12)
        mine.note("unlogged", ["x"])
        found.add(mine)
    assert found.counts == {"vectors_missing": 36, "unlogged": 3}
    assert len(found.examples["vectors_missing"]) == 20
    assert found.amiss() == 36


def listing(**texts: str) -> dict[str, Any]:
    fields = {"type": "episodic", "occurred_at": "2026-03-01T09:30:00Z", "mode": "general", "version": 1}
    return {name: {**fields, "memory_id": name, "text": text, "superseded_by": None} for name, text in texts.items()}


BEFORE = listing(kept="a", edited="a", forgotten="a")
LATER = listing(kept="a", edited="b", said="a")


@pytest.mark.parametrize("second", [BEFORE, LATER, listing(kept="a", edited="a"), listing(kept="a", edited="b")])
def test_what_the_first_was_told_meanwhile_is_no_difference(second: dict[str, Any]) -> None:
    assert not compare_memories(BEFORE, second, LATER)


def test_what_stays_different_is_told() -> None:
    found = compare_memories(BEFORE, listing(edited="c", extra="a"), LATER)
    assert found.missing == ["kept"]
    assert [memory["memory_id"] for memory in found.extra] == ["extra"]
    assert [(first["text"], second["text"]) for first, second in found.different] == [("b", "c")]
    assert found.equal == 0
