"""Moving a record to its partition, and restoring the original."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from schemas.messages.records import Outgoing, Record
from streams.wire.partitioning import MAX_MOVES, MOVED_FROM, may_move, original_record, relocate
from tests.builders.turns import record

NAMES = some.text(max_size=20).filter(lambda name: name != MOVED_FROM)
RECORDS = some.builds(
    Record,
    topic=some.just("memory.turns"),
    partition=some.integers(0, 999_999_999),
    offset=some.integers(0, 10**18 - 1),
    timestamp_ms=some.integers(0, 2**53),
    key=some.none() | some.binary(max_size=300),
    value=some.none() | some.binary(max_size=300),
    headers=some.lists(some.tuples(NAMES, some.binary(max_size=30)), max_size=4).map(tuple),
)


def read(out: Outgoing, offset: int = 7) -> Record:
    assert out.partition is not None
    assert out.timestamp_ms is not None
    return Record(out.topic, out.partition, offset, out.timestamp_ms, out.key, out.value, out.headers)


@given(RECORDS, some.binary(min_size=1, max_size=300), some.integers(0, 100))
def test_original_of_a_moved_record_is_restored_for_any_bytes(was: Record, key: bytes, partition: int) -> None:
    assert original_record(read(relocate(was, key, partition))) == was


@given(RECORDS)
def test_record_that_was_not_moved_is_its_own_original(was: Record) -> None:
    assert original_record(was) == was


def test_moved_record_keeps_value_headers_and_timestamp() -> None:
    was = record({"a": 1}, key=None, headers=(("trace", b"\x00"), ("trace", b"\xff")), timestamp_ms=123)
    out = relocate(was, b"u1", 2)
    assert out.topic == was.topic
    assert out.key == b"u1"
    assert out.partition == 2
    assert out.timestamp_ms == 123
    assert out.value == was.value
    assert out.headers[:2] == was.headers


@pytest.mark.parametrize(
    "header",
    [
        *(b"", b"\xff", b"1", b"1:1", b"1:1:A", b"1:1:A=", b"1:1:AB=", b"1:1:====", b"1:1:A\n==", b"-1:1:-"),
        *(b"1:1:-:-", b"1" * 10 + b":1:-", b"1:" + b"1" * 19 + b":-", b"x:1:-", b"1:1:\xc3\xa9"),
    ],
)
def test_forged_header_is_left_alone(header: bytes) -> None:
    forged = record(headers=((MOVED_FROM, header),))
    assert original_record(forged) == forged


def test_number_of_moves_is_limited() -> None:
    travels = record(key=None)
    for move in range(MAX_MOVES):
        assert may_move(travels), move
        travels = read(relocate(travels, b"u1", 2))
    assert not may_move(travels)
    assert original_record(travels).key is None, "where it was written first"
