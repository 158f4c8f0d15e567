"""A record by its key: boundary, partition, a move to another partition, its dead letter."""

import json
from datetime import UTC, datetime

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as some

from schemas.failures import Rejected
from schemas.messages.decoding import MAX_VALUES
from schemas.messages.records import Outgoing, Record
from streams.topics import MAX_OUTPUT_BYTES
from streams.wire.dead_letters import dead_letter, size_of
from streams.wire.partitioning import (
    MAX_MOVES,
    MAX_PARSED_BYTES,
    MOVED_FROM,
    boundary_in,
    may_move,
    murmur2,
    original_record,
    partition_of,
    relocate,
)
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


def test_boundary_is_that_of_the_scope_whatever_the_key() -> None:
    assert boundary_in(record({"scope": {"user_id": "a/b", "project_id": "p"}}, key=b"another")) == "a%2Fb"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{", b"[]", b"null", b"7", b'"scope"', b"\xff", b"{}", b'{"scope": 7}', b'{"scope": {"user_id": 7}}',
     b'{"scope": {"user_id": null}}', b'{"scope": {"user_id": ["u"]}}'],
)  # fmt: skip
def test_record_without_a_boundary_has_an_empty_one(value: bytes | None) -> None:
    assert boundary_in(record(key=b"u1", value=value) if value is None else record(value, key=b"u1")) == ""


@pytest.mark.parametrize(
    ("scope", "boundary"), [({"user_id": "a/b", "x": [1]}, "a%2Fb"), ({"user_id": 1}, ""), ({}, "")]
)
def test_boundary_of_a_large_record_is_that_of_a_small_one(scope: dict[str, object], boundary: str) -> None:
    value = json.dumps({"scope": scope, "content": "x" * MAX_PARSED_BYTES}).encode()
    assert boundary_in(Record("memory.turns", 0, 0, 0, None, value)) == boundary


def test_record_of_too_many_values_has_no_boundary() -> None:
    value = b'{"scope":{"user_id":"u1"},"x":[' + b"1," * MAX_VALUES + b"1]}"
    assert boundary_in(Record("memory.turns", 0, 0, 0, None, value)) == ""


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # From Kafka's own UtilsTest.java.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_equals_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


@given(some.binary(max_size=64))
def test_hash_equals_that_of_aiokafka_for_any_key(key: bytes) -> None:
    assert murmur2(key) == aiokafka_murmur2(key) % 2**32


@given(some.binary(max_size=64), some.integers(1, 1000))
def test_partition_is_in_range(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions


def test_highest_bit_of_the_hash_is_cleared_as_in_java() -> None:
    assert partition_of(b"21", 4) == (-973932308 & 0x7FFFFFFF) % 4
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def test_dead_letter_keeps_the_record_and_adds_six_headers() -> None:
    own = (("trace", b"\x00\xff"), ("trace", b"second"), ("empty", b""), ("null", None), ("dead_letter_code", b"older"))
    bad = record(b"\xff{", key=b"\x00k", offset=17, partition=3, headers=own)
    letter = dead_letter("memory.dead-letters", bad, Rejected("invalid_value", "too odd", "scope.user_id"), NOW)
    assert letter.topic == "memory.dead-letters"
    assert letter.key == b"\x00k"
    assert letter.value == b"\xff{"
    assert letter.partition is None
    assert letter.timestamp_ms is None
    assert letter.headers[:5] == own
    assert letter.headers[5:] == (
        ("dead_letter_topic", b"memory.turns"),
        ("dead_letter_partition", b"3"),
        ("dead_letter_offset", b"17"),
        ("dead_letter_code", b"invalid_value"),
        ("dead_letter_reason", b"scope.user_id: too odd"),
        ("dead_letter_time", b"2026-03-01T09:30:00Z"),
    )


def test_record_that_does_not_fit_is_cut_and_says_so() -> None:
    large = record(b"v" * MAX_OUTPUT_BYTES, key=b"k" * 100, headers=(("trace", b"t" * 100),))
    letter = dead_letter("d", large, Rejected("too_large", "no"), NOW)
    assert size_of(letter) == MAX_OUTPUT_BYTES
    assert letter.key == large.key
    assert dict(letter.headers)["dead_letter_cut"] == str(MAX_OUTPUT_BYTES).encode()
    assert dict(letter.headers)["trace"] == b"t" * 100


def test_headers_that_do_not_fit_are_left_out() -> None:
    letter = dead_letter(
        "d", record(b"v", key=b"k", headers=(("big", b"t" * MAX_OUTPUT_BYTES),)), Rejected("too_large", "no"), NOW
    )
    assert size_of(letter) < 1000
    assert letter.key is None
    assert letter.value == b"v"
    assert dict(letter.headers)["dead_letter_code"] == b"too_large"


def test_missing_key_and_value_stay_none() -> None:
    letter = dead_letter("d", record(None, key=None), Rejected("invalid_json", "nothing"), NOW)
    assert letter.key is None
    assert letter.value is None


def test_reason_with_a_lone_surrogate_is_encoded() -> None:
    letter = dead_letter("d", record(), Rejected("invalid_json", "a\ud800b"), NOW)
    assert dict(letter.headers)["dead_letter_reason"] == b"a?b"
