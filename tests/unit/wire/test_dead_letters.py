from datetime import UTC, datetime

from schemas.failures import Rejected
from streams.topics import MAX_OUTPUT_BYTES
from streams.wire.dead_letters import dead_letter, size_of
from tests.builders.turns import record

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
